/** The settings of a fleet of ComfyUI servers; a block of the one table in settings.ts. */
import { readChoice, readList, readWordOr } from '../readers/read-choice.ts'
import { COMMAND_SEPARATOR, readCommands, readEngineUrl } from '../readers/read-engine.ts'
import { DAY, MIB, readBytes, readCount, readDurationMs, SECOND, TIB } from '../readers/read-quantity.ts'

export const FLEET_SETTINGS = {
  comfyui: {
    group: 'Fleet',
    argument: '<url>',
    fallback: '',
    read: readList(readEngineUrl),
    help: 'Addresses of ComfyUI servers that run the jobs, comma separated, such as `http://gpu1:8188`. See docs/fleet.md.',
  },
  comfyuiLaunch: {
    group: 'Fleet',
    argument: '<command>',
    fallback: '',
    separator: COMMAND_SEPARATOR,
    read: readCommands,
    help: 'Commands that start ComfyUI servers of our own, one per line, such as `python main.py --port {port}`. They are supervised: started, watched, restarted, ended with the service. `{port}` becomes a free port. No shell is involved.',
  },
  comfyuiCount: {
    group: 'Fleet',
    argument: '<count>',
    fallback: '1',
    read: readCount({ min: 1, max: 64 }),
    help: 'How many servers each command of `comfyuiLaunch` starts. `{index}` in the command counts them from 0.',
  },
  comfyuiConcurrency: {
    group: 'Fleet',
    argument: '<count>',
    fallback: '1',
    read: readCount({ min: 1, max: 64 }),
    help: 'Jobs that one ComfyUI server is given at a time. It computes one after the other; a second one hides the hand-over.',
  },
  embedded: {
    group: 'Fleet',
    argument: '<when>',
    fallback: 'auto',
    read: readChoice(['auto', 'on', 'off']),
    help: 'Whether the built-in engine takes jobs. `auto`: only when no ComfyUI server is named.',
  },
  joins: {
    group: 'Fleet',
    argument: '<when>',
    fallback: 'auto',
    read: readChoice(['auto', 'on', 'off']),
    help: 'Whether workers on other machines may join with a worker key (`atelier work --join`). `auto`: with Postgres always, else when there is a worker key at the start. See docs/workers.md.',
  },
  maxOvertakes: {
    group: 'Fleet',
    argument: '<count>',
    fallback: '64',
    read: readCount({ min: 0, max: 100_000, example: 64 }),
    help: 'For the sake of weights that an engine has loaded, a job may be overtaken by at most this many submitted after it. `0`: plain order.',
  },
  engineWait: {
    group: 'Fleet',
    argument: '<duration>',
    fallback: '10s',
    read: readDurationMs({ min: 0, max: 3600 * SECOND }),
    help: 'How long a start waits for ComfyUI servers to say what they can run before the service listens. Later ones join when they come.',
  },
  engineLostAfter: {
    group: 'Fleet',
    argument: '<duration>',
    fallback: '15s',
    read: readDurationMs({ min: SECOND, max: 3600 * SECOND }),
    help: 'A ComfyUI server that answers nothing for so long has lost its job, which goes to another one.',
  },
  engineStallAfter: {
    group: 'Fleet',
    argument: '<duration>',
    fallback: '30m',
    read: readWordOr('none', null, readDurationMs({ min: SECOND, max: 30 * DAY })),
    help: 'A node that reports nothing for so long while the server says that it runs is taken to hang; its job fails. Twice that where the server grants no socket.',
  },
  engineIdleAfter: {
    group: 'Fleet',
    argument: '<duration>',
    fallback: '30s',
    read: readDurationMs({ min: SECOND, max: 3600 * SECOND }),
    help: "A job that waits in a ComfyUI server's own queue for so long while nothing runs there is withdrawn and goes to another one; the server is restarted (launched) or quarantined.",
  },
  engineQueueAfter: {
    group: 'Fleet',
    argument: '<duration>',
    fallback: '10m',
    read: readWordOr('none', null, readDurationMs({ min: SECOND, max: 30 * DAY })),
    help: "A job that waits in a ComfyUI server's own queue for so long behind one and the same prompt, of somebody else or of a job that tells nothing, is withdrawn and goes to another one; the server gets no job until that prompt has ended.",
  },
  recycleJobs: {
    group: 'Fleet',
    argument: '<count>',
    fallback: 'none',
    read: readWordOr('none', null, readCount({ min: 1, max: 1_000_000_000, example: 500 })),
    help: 'A launched server is replaced by a fresh one, between jobs, after so many.',
  },
  recycleMemory: {
    group: 'Fleet',
    argument: '<size>',
    fallback: 'none',
    read: readWordOr('none', null, readBytes({ min: 64 * MIB, max: 64 * TIB })),
    help: 'The same once its process occupies more than this.',
  },
  recycleAge: {
    group: 'Fleet',
    argument: '<duration>',
    fallback: 'none',
    read: readWordOr('none', null, readDurationMs({ min: SECOND, max: 365 * DAY })),
    help: 'The same once it has run for so long.',
  },
} as const
