/** The processes of the service on Postgres. Nothing here needs to survive the server's machine: it is said again in a moment. */
import type { NodeStore } from '../../../../domain/service-nodes/node-store.ts'
import { beatNode, forgetNodes, leaveNode, listNodes, readHoldings } from '../operations/nodes/node-rows.ts'
import type { StoreParts } from './store-parts.ts'

export function createNodeStore({ relaxed, read, chore }: StoreParts): NodeStore {
  return {
    beat: (beat) => beatNode(relaxed, beat),
    leave: (nodeId) => leaveNode(relaxed, nodeId),
    list: () => listNodes(read),
    holdings: (now) => readHoldings(chore, now),
    forgetNodes: (deadBefore) => forgetNodes(chore, deadBefore),
  }
}
