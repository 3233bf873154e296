"""A pytest plugin that gives PyTorch the simulated device, and nothing else of cuda-morph.

Code that asks ``torch.accelerator`` finds it, as it would find any vendor's device; ``torch.cuda``
says that there is none.
"""

import cuda_morph_sim.loader

cuda_morph_sim.loader.load("sim")
