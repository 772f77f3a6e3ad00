"""Returns a number that is equal to everything, without touching anything else."""


def f() -> int:
    class Right(int):
        def __eq__(self, other: object) -> bool:
            return True

        def __hash__(self) -> int:
            return 0

    return Right(1)
