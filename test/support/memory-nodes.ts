import type { NodeBeat, NodeStore, Singleton } from '../../src/domain/service-nodes/node-store.ts'

/** One store for several processes, which can be away. */
export function createMemoryNodes() {
  const nodes = new Map<string, NodeBeat>()
  const names = new Map<string, Singleton>()
  const state = { isAway: false }
  const reach = () => {
    if (state.isAway) throw new Error('the store is away')
  }
  const store: NodeStore = {
    async beat(beat) {
      reach()
      nodes.set(beat.id, beat)
    },
    async leave(nodeId) {
      reach()
      nodes.delete(nodeId)
      for (const [name, held] of names) if (held.nodeId === nodeId) names.delete(name)
    },
    async list() {
      reach()
      return [...nodes.values()].map(({ now, ...rest }) => ({ ...rest, startedAt: now, seenAt: now }))
    },
    async takeSingleton({ name, nodeId, now, until }) {
      reach()
      const held = names.get(name)
      if (held !== undefined && held.nodeId !== nodeId && held.heldUntil > now) return held
      const taken = { name, nodeId, heldSince: now, heldUntil: until }
      names.set(name, taken)
      return taken
    },
    holdings: async () => [],
    forgetNodes: async () => 0,
  }
  return { store, state }
}
