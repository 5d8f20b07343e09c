"""Widely cited theorems from papers other than the five main ones; one file per paper."""

from fltheory.theorems.atlas import (
    fedavg_li,
    fedawe,
    fednova,
    fedprox,
    local_gd,
    proxskip,
    scaffold_bias,
)

STATEMENTS = (
    *fedavg_li.STATEMENTS,
    *local_gd.STATEMENTS,
    *proxskip.STATEMENTS,
    *fedprox.STATEMENTS,
    *fednova.STATEMENTS,
    *fedawe.STATEMENTS,
    *scaffold_bias.STATEMENTS,
)
