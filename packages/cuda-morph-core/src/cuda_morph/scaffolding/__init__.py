"""Projects that cuda-morph writes for others: vendor plugins and operators."""

from __future__ import annotations
