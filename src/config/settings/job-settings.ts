/** How many jobs run and wait, and how long each of them may take. */
import { readChoice, readSwitch, readWordOr } from '../readers/read-choice.ts'
import { readCount, readDurationMs, SECOND, YEAR } from '../readers/read-quantity.ts'
import { ROLE_SETTINGS } from './role-settings.ts'
import type { Setting } from './setting.ts'

export const JOB_SETTINGS = {
  workers: {
    group: 'Jobs',
    argument: '<count>',
    fallback: 'auto',
    read: readWordOr('auto', 'auto', readCount({ min: 0, max: 1024, example: 4 })),
    help: 'Jobs that run at once. `auto`: with the built-in engine the number of processor cores, at least 2, so that a long job does not hold up a short one; with ComfyUI servers the number of jobs that all of them together take. `0`: jobs are accepted and wait.',
  },
  maxQueue: {
    group: 'Jobs',
    argument: '<count>',
    fallback: '10000',
    read: readCount({ min: 1, max: 10_000_000 }),
    help: 'Jobs that may wait; a further submit gets `queue_full` with `Retry-After`.',
  },
  retention: {
    group: 'Jobs',
    argument: '<duration>',
    fallback: '7d',
    read: readDurationMs({ min: SECOND, max: 100 * YEAR }),
    help: 'How long a job and its outputs are kept, counted from its submission.',
  },
  expiredGrace: {
    group: 'Jobs',
    argument: '<duration>',
    fallback: '1h',
    read: readDurationMs({ min: 0, max: YEAR }),
    help: 'How long a job that reached its retention before it ended stays readable as `expired`.',
  },
  maxRunTime: {
    group: 'Jobs',
    argument: '<duration>',
    fallback: '1h',
    read: readWordOr('none', null, readDurationMs({ min: SECOND, max: YEAR })),
    help: 'The longest time that one job may run; then it fails with `timeout`. Where accounts have tiers, the smaller of this and their `runSeconds` applies. `none`: no limit.',
  },
  cancelGrace: {
    group: 'Jobs',
    argument: '<duration>',
    fallback: '10s',
    read: readDurationMs({ min: 0, max: 3600 * SECOND }),
    help: 'How long a running job may take to stop after a cancel before its engine thread is ended by force.',
  },
  drainTimeout: {
    group: 'Jobs',
    argument: '<duration>',
    fallback: '30s',
    read: readDurationMs({ min: 0, max: 3600 * SECOND }),
    help: 'How long running jobs may take to finish after SIGTERM; then they go back to the queue.',
  },
  drainDelay: ROLE_SETTINGS.drainDelay,
  pools: ROLE_SETTINGS.pools,
  reuse: {
    group: 'Jobs',
    argument: '<mode>',
    fallback: 'none',
    read: readChoice(['none', 'exact']),
    help: 'Whether jobs without a `reuse` of their own may be answered with the result of an equal earlier job of their account: `none` or `exact`. See docs/reuse.md.',
  },
  previewOutputs: {
    group: 'Jobs',
    argument: '',
    fallback: 'false',
    read: readSwitch,
    help: 'Also keeps the temporary pictures of preview nodes as outputs.',
  },
} as const satisfies Record<string, Setting<unknown>>
