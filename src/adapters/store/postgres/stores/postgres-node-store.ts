/** The processes of the service on Postgres. Nothing here needs to survive the server's machine: it is said again in a moment. */
import type { NodeStore } from '../../../../domain/service-nodes/node-store.ts'
import {
  beatNode,
  forgetNodes,
  leaveNode,
  listNodes,
  readHoldings,
  takeSingleton,
} from '../operations/nodes/node-rows.ts'
import type { StoreParts } from './store-parts.ts'

const MAX_LOOKS = 5

export function createNodeStore({ relaxed, read, chore }: StoreParts): NodeStore {
  return {
    beat: (beat) => beatNode(relaxed, beat),
    leave: (nodeId) => leaveNode(relaxed, nodeId),
    list: () => listNodes(read),
    async takeSingleton(request) {
      for (let looks = 0; looks < MAX_LOOKS; looks++) {
        const held = await takeSingleton(relaxed, request)
        if (held !== null) return held
      }
      throw new Error(`Nobody holds ${request.name} for long enough to be seen.`)
    },
    holdings: (now) => readHoldings(chore, now),
    forgetNodes: (deadBefore) => forgetNodes(chore, deadBefore),
  }
}
