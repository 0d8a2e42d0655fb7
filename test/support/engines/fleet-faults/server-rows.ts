/** Servers that can do less than others, or do it slowly. */
import type { FaultRow } from './row.ts'

const poll = { pollMaxMs: 1 }

export const SERVER_ROWS: readonly FaultRow[] = [
  { name: 'no fault', since: 'point', ends: 'succeeded', within: poll },
  { name: 'no jobs API', faults: { noJobsApi: true }, since: 'birth', ends: 'succeeded', within: poll },
  { name: 'an asset store', faults: { hasAssets: true }, since: 'birth', ends: 'succeeded', within: poll },
  { name: 'no features', faults: { noFeatures: true }, since: 'birth', ends: 'succeeded', within: poll },
  {
    name: 'a server without a terminal, in another time zone',
    faults: { quietOutput: true, zoneMinutes: 330 },
    since: 'birth',
    ends: 'succeeded',
    within: poll,
  },
  { name: 'no log subscription', faults: { noLogs: true }, since: 'birth', ends: 'succeeded', within: poll },
  {
    name: 'a server that answers only what a run needs',
    faults: { isBare: true },
    since: 'birth',
    ends: 'succeeded',
    within: poll,
  },
  {
    name: 'node classes that take their time',
    faults: { objectInfoMs: 300 },
    since: 'birth',
    ends: 'succeeded',
    within: poll,
  },
  {
    name: 'a restart, and node classes that take their time',
    faults: { objectInfoMs: 300 },
    act: (fake) => fake.restart(),
    since: 'point',
    ends: 'moved',
    executions: { queued: 1, running: 2, finishing: 2 },
    within: { refusedMs: 1, vanishedMs: 1, pollMaxMs: 2 },
  },
]
