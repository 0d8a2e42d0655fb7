/**
 * An operator's reload of the models holds in every process: each reads its own files again, because files belong to a machine.
 * A process that misses the notice finds changed files by itself where it watches them.
 */
import type { Clock } from '../../../lib/clock.ts'
import type { Log } from '../../../lib/log.ts'
import type { EventBus } from '../../domain/events/event-bus.ts'
import type { OpenedModels, ReloadOutcome } from './open-models.ts'

interface ReloadParts {
  readonly bus: Pick<EventBus<never>, 'publishDirectory' | 'onDirectory'>
  readonly clock: Clock
  readonly log: Log
}

interface SharedReloads extends Disposable {
  /** Reloads here, and then in all other processes. A catalogue with a fault is not announced. */
  reload(): Promise<ReloadOutcome>
}

export function shareReloads(models: Pick<OpenedModels, 'reload'>, { bus, clock, log }: ReloadParts): SharedReloads {
  let isTelling = false
  const stop = bus.onDirectory(({ directory }) => {
    if (directory !== 'models' || isTelling) return
    models.reload().catch((error: unknown) => log.error({ err: error }, 'the model catalogue could not be read again'))
  })
  return {
    async reload() {
      const outcome = await models.reload()
      if (outcome.outcome === 'refused') return outcome
      isTelling = true
      bus.publishDirectory({ directory: 'models', version: clock.now().getTime() })
      isTelling = false
      return outcome
    },
    [Symbol.dispose]: stop,
  }
}
