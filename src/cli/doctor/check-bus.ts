/** Checks of how processes hear of each other: whether each can be reached for live news, or the NATS servers can. */
import { inspectBus } from '../../compose/bus/inspect-bus.ts'
import type { DatabaseFacts } from '../../compose/storage/inspect-postgres.ts'
import type { BusConfig } from '../../config/blocks/bus-config.ts'
import type { Secrets } from '../../config/secrets.ts'
import { type Finding, fail, ok, warn } from './check.ts'

const WHAT = 'bus'

export async function checkBus(
  config: BusConfig,
  { secrets, nodes }: { readonly secrets: Secrets; readonly nodes: DatabaseFacts['nodes'] },
): Promise<Finding[]> {
  const condition = await inspectBus(config, { secrets, nodes })
  if (condition === null) return []
  if (condition.kind === 'nats') {
    const remedy =
      'check the address and the credentials; until then changes are found by looking, and previews are missing'
    const { refusal } = condition
    if (refusal !== null) return [fail(WHAT, `${refusal.fault}; a start is refused`, refusal.remedy)]
    return [condition.isReached ? ok(WHAT, 'NATS answers') : fail(WHAT, 'NATS does not answer', remedy)]
  }
  const { peers } = condition
  const unreached = peers.flatMap(({ name, fault }) => (fault === null ? [] : [`${name}: ${fault}`]))
  if (unreached.length === 0) {
    const says = peers.length === 0 ? 'no process runs now' : `all ${peers.length} processes are reached from here`
    return [ok(WHAT, says)]
  }
  const remedy =
    'set advertise and internalPort there, and let the processes reach each other; until then previews of its jobs are missing elsewhere'
  return unreached.map((says) => warn(WHAT, says, remedy))
}
