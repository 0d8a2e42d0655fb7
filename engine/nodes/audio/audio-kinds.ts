/** How audio nodes declare sound, and files that hold it. */
import type { InputOptions } from '../../graph/node-catalog.ts'
import { type Audio, readAudioValue } from '../../media/audio.ts'
import { type InputKind, string } from '../../node/input-kinds.ts'
import { NodeError } from '../../node/node-error.ts'
import { type Value, valueTypeName } from '../../values/value.ts'

/** Sound, or null from a source without any: a video may have no sound. */
export function maybeAudio(): InputKind<Audio | null> {
  return {
    spec: ['AUDIO', {}],
    read(value: Value) {
      if (value === null) return null
      const audio = readAudioValue(value)
      if (audio !== null) return audio
      throw new NodeError('TypeError', `'${valueTypeName(value)}' object is no audio`)
    },
  }
}

export function audio(): InputKind<Audio> {
  const { spec, read } = maybeAudio()
  return {
    spec,
    read(value, name) {
      const given = read(value, name)
      if (given === null) throw new NodeError('TypeError', "'NoneType' object is not subscriptable")
      return given
    },
  }
}

/** The name of an uploaded file, as schema-style classes declare it. It is judged against the files that the run is given. */
export function uploadedFile(options: InputOptions): InputKind<string> {
  const { read } = string()
  return { spec: ['COMBO', { multiselect: false, options: [], ...options }], read }
}
