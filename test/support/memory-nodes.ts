import type { NodeBeat, NodeStore } from '../../src/domain/service-nodes/node-store.ts'

/** One store for several processes, which can be away. */
export function createMemoryNodes() {
  const nodes = new Map<string, NodeBeat>()
  const names = new Map<string, { readonly nodeId: string; readonly until: Date }>()
  const state = { isAway: false }
  const reach = () => {
    if (state.isAway) throw new Error('the store is away')
  }
  const store: NodeStore = {
    async beat(beat) {
      reach()
      const { id: nodeId, now, wanted = [] } = beat
      nodes.set(nodeId, beat)
      const free = wanted.filter(({ name }) => {
        const held = names.get(name)
        return held === undefined || held.nodeId === nodeId || held.until <= now
      })
      for (const { name, until } of free) names.set(name, { nodeId, until })
      return { time: null, held: free.map(({ name }) => name) }
    },
    async leave(nodeId) {
      reach()
      nodes.delete(nodeId)
      for (const [name, held] of names) if (held.nodeId === nodeId) names.delete(name)
    },
    async list() {
      reach()
      return [...nodes.values()].map(({ now, wanted: _wanted, ...rest }) => ({ ...rest, startedAt: now, seenAt: now }))
    },
    holdings: async () => [],
    forgetNodes: async () => 0,
  }
  return { store, state }
}
