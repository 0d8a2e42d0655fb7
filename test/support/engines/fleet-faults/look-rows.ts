/** Faults of what the service observes a run by: the socket, the history and the queue. */
import { LONG_MS, shortBounds } from '../comfy-test-bounds.ts'
import { ALWAYS, type FaultRow } from './row.ts'

const POLL = { pollMaxMs: 1 }
/** The socket is taken for dead soon; that never ends a run. */
const RENEWED = shortBounds('socketSilenceMs')
const SILENT = { evictHistory: true, silentSocket: true }

const SOCKET_ROWS: readonly FaultRow[] = [
  {
    name: 'a socket that goes silent, its ping alive',
    faults: { silentSocket: true },
    since: 'point',
    ends: 'succeeded',
    bounds: RENEWED,
    within: POLL,
  },
  {
    name: 'a socket that was silent all along',
    faults: { silentSocket: true },
    since: 'birth',
    ends: 'succeeded',
    bounds: RENEWED,
    within: POLL,
  },
  { name: 'a socket that is cut', act: (fake) => fake.cutSockets(), since: 'point', ends: 'succeeded', within: POLL },
  {
    name: 'a socket that is cut in the middle of the news',
    faults: { cutSocketAfterFrames: 2 },
    since: 'point',
    ends: 'succeeded',
    within: POLL,
  },
  {
    name: 'a socket that is cut and refused from then on',
    faults: { refuseSocket: true },
    act: (fake) => fake.cutSockets(),
    since: 'point',
    ends: 'succeeded',
    within: POLL,
  },
  {
    name: 'no socket at all',
    faults: { refuseSocket: true },
    since: 'birth',
    ends: 'succeeded',
    within: { ...POLL, socketWaitMs: 1 },
  },
  {
    name: 'a new connection that is forgotten when the old one unwinds',
    faults: { unwindSocketMs: 50 },
    act: (fake) => fake.cutSockets(),
    since: 'point',
    ends: 'succeeded',
    bounds: RENEWED,
    within: POLL,
  },
  {
    name: 'the same, so late that the next connection is hit',
    faults: { unwindSocketMs: 400 },
    act: (fake) => fake.cutSockets(),
    since: 'point',
    ends: 'succeeded',
    bounds: RENEWED,
    within: POLL,
  },
  { name: 'news of strangers', faults: { strangersFrames: true }, since: 'point', ends: 'succeeded', within: POLL },
]

const paths = ['/history', '/queue'] as const
const lost = { unreachableMs: 1, pollMaxMs: 2 }

const HISTORY_ROWS: readonly FaultRow[] = [
  {
    name: 'a history that keeps nothing',
    faults: { evictHistory: true },
    since: 'point',
    ends: 'succeeded',
    within: { ...POLL, vanishedMs: 1 },
  },
  {
    name: 'a history that keeps nothing, and a silent socket',
    faults: SILENT,
    since: 'submit',
    ends: 'moved',
    within: { pollMaxMs: 2, vanishedMs: 1 },
  },
  {
    name: 'the same, from this point on',
    faults: SILENT,
    since: 'point',
    ends: { queued: 'moved', running: 'moved', finishing: 'moved' },
    within: { pollMaxMs: 2, vanishedMs: 1 },
  },
  {
    name: 'a history that lags',
    faults: { historyLagMs: 120 },
    since: 'point',
    ends: 'succeeded',
    // The run is in neither queue nor history for a while, and must not count as forgotten.
    bounds: { vanishedMs: LONG_MS },
    within: { ...POLL, vanishedMs: 1 },
  },
  ...paths.flatMap((path): FaultRow[] => [
    {
      name: `nonsense from ${path}, three times`,
      faults: { garbage: { [path]: 3 } },
      since: 'point',
      ends: 'succeeded',
      within: { pollMaxMs: 4 },
    },
    {
      name: `503 from ${path}, three times`,
      faults: { unavailable: { [path]: 3 } },
      since: 'point',
      ends: 'succeeded',
      within: { pollMaxMs: 4 },
    },
    {
      name: `no answer from ${path}, once`,
      faults: { mute: { [path]: 1 } },
      since: 'point',
      ends: 'succeeded',
      within: { pollMaxMs: 2, callMs: 1 },
    },
  ]),
  {
    name: '503 from /history for good',
    faults: { unavailable: { '/history': ALWAYS } },
    since: 'point',
    // The socket has told everything.
    ends: 'succeeded',
    within: POLL,
  },
  {
    name: 'nonsense from /history for good, and a silent socket',
    faults: { garbage: { '/history': ALWAYS }, silentSocket: true },
    since: 'submit',
    ends: 'moved',
    within: lost,
  },
  {
    name: '503 from /history for good, and a silent socket',
    faults: { unavailable: { '/history': ALWAYS }, silentSocket: true },
    since: 'submit',
    ends: 'moved',
    within: lost,
  },
  {
    name: 'no answer from /history for good, and a silent socket',
    faults: { mute: { '/history': ALWAYS }, silentSocket: true },
    since: 'submit',
    ends: 'moved',
    within: { ...lost, callMs: 1 },
  },
]

export const LOOK_ROWS: readonly FaultRow[] = [...SOCKET_ROWS, ...HISTORY_ROWS]
