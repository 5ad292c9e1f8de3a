"""What probes send, message by message: requests to a memory, packets over a mesh.

In: requests and routes. Out: messages, and what is measured of them. The probes call it.
"""
