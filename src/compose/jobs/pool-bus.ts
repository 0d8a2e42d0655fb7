import type { EventBus } from '../../domain/events/event-bus.ts'
import type { LiveEvent } from '../../domain/events/live-event.ts'

const REMOTE_WORK_MS = 50

/**
 * A worker is woken only for jobs of its own pool; otherwise every submit would wake the workers of every deployment. What another
 * process announces is looked at a moment later, at a time of its own in each process: most likely it is taken there, and many
 * announcements become one look.
 */
export function toPoolBus(bus: EventBus<LiveEvent>, pool: string): EventBus<LiveEvent> {
  return {
    ...bus,
    onWork(listener) {
      let soon: NodeJS.Timeout | null = null
      const stop = bus.onWork((of, isRemote) => {
        if (of !== undefined && of !== pool) return
        if (!isRemote) return listener(of, false)
        soon ??= setTimeout(() => {
          soon = null
          listener(of, true)
        }, Math.random() * REMOTE_WORK_MS)
      })
      return () => {
        stop()
        if (soon !== null) clearTimeout(soon)
      }
    },
  }
}
