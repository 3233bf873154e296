"""Train a TransE knowledge-graph embedding as TorchKGE's quick start shows, and evaluate it."""

import torch
from pandas import DataFrame
from torch.optim import Adam
from torchkge.data_structures import KnowledgeGraph
from torchkge.evaluation import LinkPredictionEvaluator
from torchkge.models import TransEModel
from torchkge.sampling import BernoulliNegativeSampler
from torchkge.utils import DataLoader, MarginLoss

# A ring of towns with three relations, in place of the downloaded FB15k.
towns, relations = 120, {"next": 1, "second": 2, "opposite": 60}
facts = [
    {"from": f"town{i}", "to": f"town{(i + step) % towns}", "rel": name}
    for name, step in relations.items()
    for i in range(towns)
]
torch.manual_seed(0)
graph = KnowledgeGraph(df=DataFrame(facts))
kg_train, kg_test = graph.split_kg(share=0.8)

model = TransEModel(32, kg_train.n_ent, kg_train.n_rel, dissimilarity_type="L2")
criterion = MarginLoss(0.5)
model.cuda()
criterion.cuda()

optimizer = Adam(model.parameters(), lr=0.02, weight_decay=1e-5)
sampler = BernoulliNegativeSampler(kg_train)
dataloader = DataLoader(kg_train, batch_size=64, use_cuda="all")

for epoch in range(30):
    running_loss = 0.0
    for batch in dataloader:
        h, t, r = batch
        n_h, n_t = sampler.corrupt_batch(h, t, r)
        optimizer.zero_grad()
        pos, neg = model(h, t, r, n_h, n_t)
        loss = criterion(pos, neg)
        loss.backward()
        optimizer.step()
        running_loss += loss.item()
    if epoch % 10 == 0 or epoch == 29:
        print(f"epoch {epoch}: mean loss {running_loss / len(dataloader):.5f} on {h.device}")
    model.normalize_parameters()

evaluator = LinkPredictionEvaluator(model, kg_test)
evaluator.evaluate(b_size=32, verbose=False)
evaluator.print_results()
