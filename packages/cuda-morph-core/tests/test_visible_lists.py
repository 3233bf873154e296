"""Lists of visible devices: what each kind of runtime accepts."""

import pytest

from cuda_morph.visible_lists import ascending_integers, cuda_like, integers


@pytest.mark.parametrize(
    ("read", "text", "right"),
    [
        (integers, "", True),
        (integers, "3,1", True),
        (integers, " 0 , 1 ", True),
        (integers, "0.0", False),
        (integers, "-1", False),
        (integers, "0,", False),
        (ascending_integers, "0,1,5", True),
        (ascending_integers, "1,1", False),
        (ascending_integers, "2,1", False),
        (ascending_integers, "x", False),
        (cuda_like(("GPU-",)), "1,0", True),
        (cuda_like(("GPU-",)), "GPU-7f,0", True),
        (cuda_like(("GPU-",)), "2abc", True),
        (cuda_like(("GPU-",)), "0,0", False),
        (cuda_like(("GPU-",)), "0,00", False),
        (cuda_like(("GPU-",)), "GPU-1,GPU-1", False),
        (cuda_like(("GPU-",)), "0,-1,1", False),
        (cuda_like(("GPU-",)), "MIG-1", False),
        (cuda_like(("GPU-",)), "none", False),
    ],
)
def test_lists_are_judged(read, text, right):
    assert (read(text) == "") is right


def test_the_item_is_named():
    assert "'-1'" in cuda_like(())("0,-1")
    assert "'x'" in integers("0,x")
