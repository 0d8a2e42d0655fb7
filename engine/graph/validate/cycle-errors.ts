/** Reports a cycle on every node in it, with the path around it from the node where it was entered. */
import type { GraphNode } from '../graph.ts'
import type { NodeError } from './validation-result.ts'

interface CycleMember {
  readonly id: string
  readonly node: GraphNode
}

// Each member's error holds the path, so without a bound the answer would grow with the square of the length.
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
