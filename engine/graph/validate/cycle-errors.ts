/** How a cycle is reported: on every node of it, with the way round from where it was entered. */
import type { GraphNode } from '../graph.ts'
import type { NodeError } from './validation-result.ts'

interface CycleMember {
  readonly id: string
  readonly node: GraphNode
}

// The way round stands in the error of each member: unabridged, a long cycle would answer with its length squared.
const MAX_SHOWN = 50

/** The members in the order of the walk; returns the error for one of them. */
export function cycleErrors(members: readonly CycleMember[]): (nodeId: string) => NodeError {
  const isLong = members.length > MAX_SHOWN
  const shown = isLong ? members.slice(0, MAX_SHOWN) : members
  const names = shown.map(({ id, node }) => `${id} (${node.classType})`)
  const gap = isLong ? [`... ${members.length - MAX_SHOWN} more ...`] : []
  const details = [...names, ...gap, names[0]].join(' -> ')
  const cycleNodes = shown.map(({ id }) => id)
  return (nodeId) => ({
    type: 'dependency_cycle',
    message: 'Dependency cycle detected',
    details,
    extra_info: { node_id: nodeId, cycle_nodes: cycleNodes },
  })
}
