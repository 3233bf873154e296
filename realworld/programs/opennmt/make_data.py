"""Write parallel text files: sequences of letters, and the same sequences turned round."""

import random
from pathlib import Path

random.seed(0)
for name, count in {"train": 2000, "valid": 64}.items():
    lines = [random.choices("abcdefgh", k=random.randint(3, 6)) for _ in range(count)]  # noqa: S311
    Path(f"{name}.src").write_text("".join(" ".join(line) + "\n" for line in lines))
    Path(f"{name}.tgt").write_text("".join(" ".join(line[::-1]) + "\n" for line in lines))
