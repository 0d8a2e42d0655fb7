/** Checks of the engines that jobs would run on: each server's health, load, node classes, weights and last error. */
import { type EngineCondition, inspectEngines } from '../../compose/engines/inspect-engines.ts'
import type { Config } from '../../config/config.ts'
import { type Finding, fail, ok, warn } from './check.ts'

const ANSWER_WITHIN_MS = 5000

export async function checkEngines({ fleet }: Config): Promise<Finding[]> {
  const conditions = await inspectEngines(fleet, { withinMs: ANSWER_WITHIN_MS })
  const embedded = fleet.hasEmbedded ? [ok('engine embedded', 'a part of the service')] : []
  return [...conditions.map(toFinding), ...embedded]
}

function toFinding(condition: EngineCondition): Finding {
  const what = `engine ${condition.id}`
  switch (condition.state) {
    case 'launched':
      return ok(what, `is started with the service: ${condition.command}`)
    case 'absent':
      return fail(what, condition.reason, 'start it, or check its address; jobs that need it wait until it is there')
    case 'ready':
      if (condition.lastError === null) return ok(what, condition.says)
      return warn(what, `${condition.says}; last error: ${condition.lastError}`, 'look at the log of that server')
  }
}
