/** The built-in engine, and the nodes that users wrote for it. */
import { readList, readPath, readWordOr } from '../readers/read-choice.ts'
import { DAY, MIB, readBytes, readCount, readDurationMs, TIB } from '../readers/read-quantity.ts'
import type { Setting } from './setting.ts'

export const ENGINE_SETTINGS = {
  engineThreads: {
    group: 'Engine',
    argument: '<count>',
    fallback: 'auto',
    read: readWordOr('auto', 'auto', readCount({ min: 1, max: 256 })),
    help: 'Threads of the built-in engine. `auto`: one less than the processor cores, so that requests stay quick while it computes. A large picture also uses idle cores.',
  },
  engineMemory: {
    group: 'Engine',
    argument: '<size>',
    fallback: 'auto',
    read: readWordOr('auto', 'auto', readBytes({ min: 64 * MIB, max: 64 * TIB })),
    help: 'Memory for the built-in engine. `auto`: half of the machine, at most 8 GiB.',
  },
  maxImagePixels: {
    group: 'Engine',
    argument: '<count>',
    fallback: '268435456',
    read: readCount({ min: 1, max: 2 ** 40 }),
    help: 'The most pixels that a picture may decode to; the default is 16384 × 16384.',
  },
  nodes: {
    group: 'Engine',
    argument: '<folder>',
    fallback: '',
    read: readList(readPath),
    help: 'Folders with nodes of your own, comma separated; see docs/custom-nodes.md. They are trusted code. Read at the start only.',
  },
  nodeTimeout: {
    group: 'Engine',
    argument: '<duration>',
    fallback: '10m',
    read: readDurationMs({ min: 100, max: 30 * DAY }),
    help: 'The longest time that one call of a node may take, built-in or your own; then its job fails and its thread is ended.',
  },
} as const satisfies Record<string, Setting<unknown>>
