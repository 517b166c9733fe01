"""The environments beside the active one (deeplearning_additional_stacks): jobs choose one of them by its stack's name."""

from dataclasses import replace

from hadoop_dl.plan import builds
from hadoop_dl.plan.component import Case, Component
from hadoop_dl.plan.digests import canonical
from hadoop_dl.plan.model import Plan, Row
from hadoop_dl.plan.target import Target


class AdditionalEnvironments(Component):
    """Those beside the active one, each with its settings of Spark and Hadoop. One that is no longer requested is an old environment."""

    def examine(self, plan: Plan, case: Case) -> None:
        for target in case.additional:
            problems = [*target.problems, *wheel_problems(case, target)]
            plan.tell(case.host.name, [f"deeplearning_additional_stacks: {text}" for text in problems], target.warnings)

    def has_work(self, case: Case) -> bool:
        return bool(case.additional) or case.receipt(self.name) is not None

    def compare(self, case: Case) -> Row | None:
        if not case.additional:
            return case.row(self.name, "installed", "none", "no longer requested")
        row = super().compare(case)
        names = [target.environment for target in case.additional]
        broken = [f"{name}: {reason}" for name in names if (reason := case.lacking(name))]
        if row is None and broken:
            row = case.row(self.name, "incomplete", "", "; ".join(broken))
        return row and replace(row, wanted=", ".join(names))

    def deciders(self, case: Case) -> dict[str, str]:
        return {
            "environment": canonical([target.environment for target in case.additional]),
            "stack": canonical([target.stack_text for target in case.additional]),
        }

    def publish(self, plan: Plan, case: Case) -> None:
        case.part["additional"] = [
            {**item.part, "hadoop": item.stack is not None and item.stack.uses_hadoop} for item in case.additional
        ]


def wheel_problems(case: Case, target: Target) -> list[str]:
    """Why a wheel that the site builds cannot be installed on the host."""
    if case.run.building or target.stack is None or not target.stack.is_built or target.problems:
        return []
    if target.record is None:
        return [builds.missing_sentence(target.stack)]
    return builds.fit_problems(target.record, case.facts)
