def f(x: int | None = None, /, *, y=1) -> str:
    return f"{x=} {y!r}"
