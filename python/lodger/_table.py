"""Tables for data tools: rows of ours as Arrow, pandas and polars have them."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from ._check import imported
from .errors import InputError

if TYPE_CHECKING:
    import numpy.typing as npt
    import pandas
    import polars
    import pyarrow


class Tabular:
    """What can be had as a table.

    ``to_arrow()``, ``to_pandas()`` and ``to_polars()`` make one; libraries that know Arrow's
    PyCapsule interface take it as it is: ``polars.DataFrame(it)``, ``pyarrow.table(it)``,
    ``pandas.DataFrame.from_arrow(it)``, and DuckDB in a query.
    """

    def rows(self) -> list[dict[str, Any]]:
        """A flat dict for each row."""
        raise NotImplementedError

    def to_arrow(self) -> pyarrow.Table:
        """The table for Arrow.

        Raises:
            MissingLibraryError: There is no pyarrow: ``pip install 'lodger[arrow]'``.
        """
        return arrow(self.rows())

    def to_pandas(self) -> pandas.DataFrame:
        """The table for pandas.

        Raises:
            MissingLibraryError: There is no pandas or no pyarrow: ``pip install 'lodger[pandas]'``.
        """
        imported("pandas", "pandas")
        imported("pyarrow", "pandas")
        return self.to_arrow().to_pandas()

    def to_polars(self) -> polars.DataFrame:
        """The table for polars.

        Raises:
            MissingLibraryError: There is no polars or no pyarrow: ``pip install 'lodger[polars]'``.
        """
        polars = imported("polars", "polars")
        imported("pyarrow", "polars")
        return polars.from_arrow(self.to_arrow())

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The table by Arrow's PyCapsule interface."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)


def no_column(name: object, known: Iterable[str]) -> KeyError:
    """Says that there is no such column, and which one may be meant."""
    near = difflib.get_close_matches(str(name), list(known), n=1)
    return KeyError(f"no column {name!r}" + (f"; did you mean {near[0]!r}?" if near else ""))


class Columnar(Tabular):
    """A table that is iterated over by the names of its columns, as a dict of them is."""

    def __array__(self, dtype: object = None, copy: object = None) -> npt.NDArray[Any]:
        """Refused: ``pandas.DataFrame(it)`` would be a column of names.

        Raises:
            InputError: Always.
        """
        raise InputError(
            f"a {type(self).__name__} is a table of columns, which neither `pandas.DataFrame` "
            "nor NumPy takes as it is",
            hint="`to_pandas()` makes it one of pandas, `columns()` has NumPy's arrays",
        )


def number_type(values: Iterable[Any]) -> str | None:
    """Arrow's type that holds all of these numbers exactly; none if there is no such, or some are
    no numbers."""
    some = list(values)
    flags = sum(isinstance(value, bool) for value in some)
    if flags or not all(isinstance(value, (int, float)) for value in some):
        return "bool" if some and flags == len(some) else None
    whole = [value for value in some if isinstance(value, int)]
    low, high = min(whole, default=0), max(whole, default=0)
    if len(whole) < len(some):
        return "double" if low >= -(2**53) and high <= 2**53 else None
    if low >= -(2**63) and high < 2**63:
        return "int64"
    return "uint64" if low >= 0 and high < 2**64 else None


def arrow(rows: list[dict[str, Any]]) -> Any:
    """Rows as an Arrow table. Whole numbers stay whole; a column of several kinds becomes text."""
    pyarrow = imported("pyarrow", "arrow")
    names = list(dict.fromkeys(name for row in rows for name in row))
    columns = {name: [row.get(name) for row in rows] for name in names}
    return pyarrow.table({name: _column(pyarrow, values) for name, values in columns.items()})


def _column(pyarrow: Any, values: list[Any]) -> Any:
    some = [value for value in values if value is not None]
    if not some:
        # All numbers that a row may be without; a column of type null is no use to anybody.
        return pyarrow.array(values, pyarrow.float64())
    if (kind := number_type(some)) is not None:
        return pyarrow.array(values, kind)
    texts = [None if one is None else str(one) for one in values]
    return pyarrow.array(texts, pyarrow.string())
