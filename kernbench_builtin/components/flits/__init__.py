"""Flits, the ports of routers that have virtual channels, and who may use which channel: parts of `builtin.router_vc`.

In come messages at the edge of a network of such routers; out they come at another edge. Only `router_vc` calls.
"""
