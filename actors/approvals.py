"""The user's decisions without a tool: what may be disclosed, what it may cost, which plan."""

from dataclasses import replace
from decimal import Decimal
from hashlib import sha256

from actors.draft import Draft
from smista.core.decision import Decision
from smista.core.gates import COST, DISCLOSURE, PLAN, Gate, disclosure_targets
from smista.core.messages import ApprovalDecision
from smista.core.phase import AwaitingApproval
from smista.core.records import PlanRecord, PlanStatus
from smista.core.secret import Plain

CARRY_OUT = "The plan is approved. Carry it out."


def take_decision(draft: Draft, phase: AwaitingApproval, decided: ApprovalDecision) -> bool:
    """Take the user's word on what *phase* asked; return whether the run goes on."""
    match phase.kind:
        case "remote_disclosure":
            return _take_disclosure(draft, phase, decided)
        case "cost_limit":
            return _take_cost(draft, phase, decided)
        case _:
            return _take_plan(draft, phase, decided)


def _take_disclosure(draft: Draft, phase: AwaitingApproval, decided: ApprovalDecision) -> bool:
    # After a restart an encrypted session has no paths here; what those covered is asked again.
    provider, paths = phase.detail["provider"], list(phase.detail["paths"])
    targets = disclosure_targets(provider, paths)
    for target in targets:
        draft.approve(DISCLOSURE, target, decided.decision, decided.reason)
    if decided.decision == "approved":
        draft.disclose(targets)
    else:
        what = ", ".join(paths) or "the context"
        draft.change_run(barred=f"the user refused to disclose {what} to {provider}")
    return True


def _take_cost(draft: Draft, phase: AwaitingApproval, decided: ApprovalDecision) -> bool:
    model = f"{phase.detail['provider']}/{phase.detail['model']}"
    draft.approve(COST, model, decided.decision, decided.reason)
    if decided.decision == "rejected":
        return False
    if "estimated_cost" not in phase.detail:
        return True  # the figures are sealed since a restart, so the question comes again
    estimated = phase.detail["estimated_cost"]
    if estimated is None:
        draft.change_run(unpriced_agreed=True)
    else:
        draft.change_run(ceiling=Decimal(phase.detail["spent"]) + Decimal(estimated))
    return True


def _take_plan(draft: Draft, phase: AwaitingApproval, decided: ApprovalDecision) -> bool:
    plan = draft.state.plan
    approved = decided.decision == "approved"
    draft.approve(PLAN, phase.detail["plan"], decided.decision, decided.reason)
    if plan is not None:
        status = PlanStatus.APPROVED if approved else PlanStatus.REJECTED
        at = draft.now if approved else None
        draft.put_plan(replace(plan, status=status, updated_at=draft.now, approved_at=at))
    if approved:
        draft.end_planning()
        draft.add_note(CARRY_OUT)
    elif decided.reason:
        draft.add_user(decided.reason)
    return approved or bool(decided.reason)


def store_plan(draft: Draft, decision: Decision, text: str) -> Gate:
    """Keep *text* as a draft plan and return the question whether to carry it out."""
    plan_id = draft.new_id("session_plan")
    digest = f"sha256:{sha256(text.encode()).hexdigest()}"
    plan = PlanRecord(
        id=plan_id,
        path=f".smista/plans/{plan_id}.md",
        status=PlanStatus.DRAFT,
        content=Plain(text),
        content_hash=digest,
        created_at=draft.now,
        updated_at=draft.now,
        restricted=decision.restricted_in_view,
    )
    draft.put_plan(plan)
    detail = {"plan": plan_id, "path": plan.path, "content": text, "content_hash": digest}
    return Gate(kind=PLAN, detail=detail)
