"""How many relays: a pure function over what the relays know of their future. `decision.decide` is the way in.

gather(statuses, offsets, now_ms) -> FleetSignals          signals.py
decide(policy, current, signals, memory, now_ms) -> Decision    decision.py
Budget.ask(...)                                            budget.py: steps of the whole operator
explain(decision) -> dict                                  explanation.py: `kubectl delaytopic why-scale`
"""
