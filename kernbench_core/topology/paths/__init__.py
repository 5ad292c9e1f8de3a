"""How paths are searched for: `search` finds the cheapest, `mesh_order` lays them in dimension order; see `routing`."""
