/** The processes of a service as an operator sees them: what each is, when it was last heard of, and what it holds. */
import type { Clock } from '../../../lib/clock.ts'
import type { NodeAbout, NodeStore, ServiceNode } from './node-store.ts'

/** `dead`: it did not say in time that it lives. What it holds is taken from it, and it is forgotten after a day. */
type NodeState = 'alive' | 'draining' | 'dead'

export interface ReportedNode extends Pick<ServiceNode, 'id' | 'startedAt' | 'seenAt' | 'about'> {
  readonly state: NodeState
  /** Jobs and calls of models under its leases. */
  readonly jobs: number
  readonly calls: number
  /** Names of the work of all that it does. */
  readonly chores: readonly string[]
  /** Ids of the engines that it gives work to. */
  readonly engines: readonly string[]
}

interface ReportDeps {
  readonly store: Pick<NodeStore, 'list' | 'holdings'>
  /** Which process gives work to which engine, as the store knows it. */
  readonly drivenEngines: () => Promise<readonly { readonly nodeId: string; readonly engineId: string }[]>
  /** The process that asks; null: it is none of the service. */
  readonly own: OwnNode | null
  readonly clock: Clock
}

export interface OwnNode {
  readonly id: string
  readonly startedAt: Date
  /** A process that is alone says nothing to the store, and does every chore. */
  readonly isAlone: boolean
  about(): NodeAbout
}

/** Those that live first, then by id. */
export type ReportNodes = () => Promise<readonly ReportedNode[]>

export function createNodeReport({ store, drivenEngines, own, clock }: ReportDeps): ReportNodes {
  return async function reportNodes() {
    const now = clock.now()
    const [known, holdings, engines] = await Promise.all([store.list(), store.holdings(now), drivenEngines()])
    const alone = own?.isAlone === true ? [toLoneNode(own, now)] : []
    const report = [...alone, ...known].map((node): ReportedNode => {
      const { id, startedAt, seenAt, about } = node
      const held = holdings.find(({ nodeId }) => nodeId === id)
      return {
        id,
        startedAt,
        seenAt,
        about,
        state: stateOf(node, now),
        jobs: held?.jobs ?? 0,
        calls: held?.calls ?? 0,
        chores: held?.names ?? [],
        engines: engines.filter(({ nodeId }) => nodeId === id).map(({ engineId }) => engineId),
      }
    })
    return report.sort((a, b) => rankOf(a) - rankOf(b))
  }
}

function toLoneNode({ id, startedAt, about }: OwnNode, now: Date): ServiceNode {
  return { id, startedAt, seenAt: now, aliveUntil: new Date(now.getTime() + 1), about: about() }
}

function stateOf({ aliveUntil, about }: ServiceNode, now: Date): NodeState {
  if (aliveUntil <= now) return 'dead'
  return about.isDraining === true ? 'draining' : 'alive'
}

function rankOf({ state }: ReportedNode): number {
  return state === 'dead' ? 1 : 0
}
