/** How video nodes declare what they take. */

import { readVideoValue, type Video } from '../../media/video.ts'
import type { Given, GroupKind } from '../../node/dynamic-kinds.ts'
import type { InputKind } from '../../node/input-kinds.ts'
import { NodeError } from '../../node/node-error.ts'
import { type Value, valueTypeName } from '../../values/value.ts'

export const video: InputKind<Video> = {
  spec: ['VIDEO', {}],
  read(value: Value) {
    const read = readVideoValue(value)
    if (read !== null) return read
    throw new NodeError('AttributeError', `'${valueTypeName(value)}' object has no attribute 'get_components'`)
  },
}

/** A group that may be left out. */
export function optionalGroup<T>(kind: GroupKind<T>): GroupKind<T | undefined> {
  return {
    spec: kind.spec,
    readGroup: (given: Given, path: string) => (Object.hasOwn(given, path) ? kind.readGroup(given, path) : undefined),
  }
}
