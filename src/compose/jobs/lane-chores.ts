/** The chores of a fleet: lanes of jobs that came in elsewhere are learnt, and jobs that no engine can run any more are ended. */
import { uptimeMs } from '../../../lib/waiting/uptime.ts'
import type { EventBus } from '../../domain/events/event-bus.ts'
import type { LiveEvent } from '../../domain/events/live-event.ts'
import type { LaneKeeper } from '../../domain/jobs/claim/lane-keeper.ts'
import type { Chore } from '../../domain/jobs/sweeps/housekeeping.ts'
import type { Heartbeat } from '../../domain/service-nodes/heartbeat.ts'
import type { OpenedBus } from '../bus/open-bus.ts'

// Beside others, jobs of a kind that is new here wait for as long before this process can claim them.
const LEARN_MS = { alone: 5000, besideOthers: 1000 }
// While nothing was queued elsewhere, as far as notices tell, there is nothing to learn.
const LEARN_ANYWAY_MS = 10_000

interface LaneChoreDeps {
  readonly heartbeat: Pick<Heartbeat, 'isAlone'>
  readonly bus: Pick<EventBus<LiveEvent>, 'onChanged' | 'onGap'> & Pick<OpenedBus, 'health'>
}

export function createLaneChores({ learn, endStranded }: LaneKeeper, { heartbeat, bus }: LaneChoreDeps): Chore[] {
  const { isAlone } = heartbeat
  const everyMs = isAlone ? LEARN_MS.alone : LEARN_MS.besideOthers
  let isNews = true
  let learntAtMs = Number.NEGATIVE_INFINITY
  bus.onChanged(({ move, isRemote }) => {
    if (isRemote === true && (move === 'queued' || move === 'returned')) isNews = true
  })
  bus.onGap(() => {
    isNews = true
  })

  async function learnNews(): Promise<void> {
    const isDue = uptimeMs() - learntAtMs >= LEARN_ANYWAY_MS
    if (!isNews && !isDue && bus.health()?.isHearing === true) return
    isNews = false
    learntAtMs = uptimeMs()
    if (await learn()) isNews = true
  }

  return [
    // Each process claims by what it knows of the lanes.
    { name: 'learn-lanes', runs: 'each', everyMs, run: learnNews },
    { name: 'end-stranded', runs: 'once', everyMs: 10_000, run: endStranded },
  ]
}
