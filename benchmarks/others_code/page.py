"""The tables of docs/others-code.md, from results.json.

    python benchmarks/others_code/page.py

writes them between the page's markers; a test fails if they no longer agree.
"""

import json
from pathlib import Path

HERE = Path(__file__).resolve().parent
PAGE = HERE.parents[1] / "docs" / "others-code.md"

DIFFERS = {
    # how an implementation that fails laws differs, as read in its code, and the page's section on
    # it
    ("fluke", "FedNova"): ("differs", "fluke-fednova"),
    ("fluke", "SCAFFOLD, global_step"): ("differs", "fluke-scaffold-with-global_step"),
    ("fedml", "FedAvgAPI"): (
        "differs on a CPU, in the first round",
        "fedml-the-first-round-on-a-cpu",
    ),
    ("fedml", "FedProxTrainer"): (
        "differs on a CPU, in the first round",
        "fedml-the-first-round-on-a-cpu",
    ),
    ("fedml", "ScaffoldTrainer"): ("differs", "fedml-scaffold"),
    ("fedml", "ScaffoldTrainer, parameters by value"): ("differs", "fedml-scaffold"),
    ("fedlab", "FedNova"): ("differs where not all take part", "fedlab-fednova"),
    ("fedlab", "FedNova, option weighted_com"): (
        "variant: clients count equally",
        "fedlab-fednova",
    ),
    ("flgo", "mifa, c = 0"): ("variant: the mean of clients heard from", "flgo-mifa-with-c-0"),
    ("pfl", "SCAFFOLD"): ("differs", "pfl-scaffold"),
    ("pfl", "SCAFFOLD, gradient as control variate"): ("differs", "pfl-scaffold"),
    ("nvflare", "Scaffold"): ("differs where not all take part", "nvflare-scaffold"),
}
ALGORITHMS = {
    "fedavg": "FedAvg",
    "fedprox": "FedProx",
    "fednova": "FedNova",
    "scaffold": "SCAFFOLD",
    "mifa": "MIFA",
}


def verdict(entry):
    """Return the table's verdict on an implementation."""
    if entry["conforms"]:
        return "conforms"
    words, anchor = DIFFERS[entry["library"], entry["implementation"]]
    return f"[{words}](#{anchor})"


def table(results):
    """Return the table, with one line per implementation."""
    lines = [
        "| library | version | implementation | algorithm | verdict | laws passed "
        "| first law that fails | distance from the formula: everybody present, with absences |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for entry in results["entries"]:
        about = results["libraries"][entry["library"]]
        outcomes = [one["outcome"] for one in entry["laws"].values()]
        judged = [one for one in outcomes if one != "does not apply"]
        failed = [law for law, one in entry["laws"].items() if one["outcome"] == "FAILED"]
        distance = entry["from_formula"]
        lines.append(
            f"| {entry['library']} | {about['version']} | `{entry['implementation']}` "
            f"| {ALGORITHMS[entry['algorithm']]} | {verdict(entry)} "
            f"| {judged.count('passed')} of {len(judged)} | {failed[0] if failed else ''} "
            f"| {distance['everybody']:.0e}, {distance['absences']:.0e} |"
        )
    return "\n".join(lines)


def rounds(results):
    """Return the page's worked rounds: models by the paper and by the library."""
    lines = ["| library | implementation | by the paper | by the library |", "|---|---|---|---|"]
    for one in results["rounds"]:
        paper, actual = (", ".join(f"{x:g}" for x in one[key]) for key in ("paper", "actual"))
        lines.append(f"| {one['library']} | `{one['implementation']}` | {paper} | {actual} |")
    return "\n".join(lines)


def rendered(page, results):
    """Return the page with its tables rewritten."""
    for name, text in (("table", table(results)), ("rounds", rounds(results))):
        before, rest = page.split(f"<!-- {name} -->\n")
        _, after = rest.split(f"\n<!-- end of {name} -->")
        page = f"{before}<!-- {name} -->\n{text}\n<!-- end of {name} -->{after}"
    return page


if __name__ == "__main__":
    found = json.loads((HERE / "results.json").read_text())
    PAGE.write_text(rendered(PAGE.read_text(), found))
