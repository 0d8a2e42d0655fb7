/**
 * The inputs of a class in the order in which the editor makes slots and widgets of them, with those that its page adds to
 * some classes: buttons for uploads, players, views of 3D models.
 */
import type { InputOptions, InputSpec, NodeDefinition } from '../../../../../engine/graph/node-catalog.ts'
import type { JsonValue } from '../../../../../lib/json/lossless-json.ts'

export interface EditorInput {
  readonly name: string
  readonly type: string
  readonly isOptional: boolean
  readonly options: InputOptions
  /** What a combo offers; null for other types. */
  readonly choices: readonly JsonValue[] | null
}

export function toEditorInput(name: string, spec: InputSpec, isOptional: boolean): EditorInput {
  const [type, options] = spec
  const known: InputOptions = typeof options === 'object' && options !== null ? options : {}
  if (Array.isArray(type)) {
    return { name, type: 'COMBO', isOptional, options: known, choices: type as readonly JsonValue[] }
  }
  const word = typeof type === 'string' ? type : 'UNKNOWN'
  const listed = known.options
  const choices = word === 'COMBO' ? (Array.isArray(listed) ? (listed as readonly JsonValue[]) : []) : null
  return { name, type: word, isOptional, options: known, choices }
}

interface ReadInputs {
  readonly declared: ReadonlyMap<string, EditorInput>
  readonly ordered: readonly EditorInput[]
}

/** A catalog gives the same objects for every file. */
const known = new WeakMap<NodeDefinition, ReadInputs>()

function inputsOf(definition: NodeDefinition): ReadInputs {
  let read = known.get(definition)
  if (read === undefined) {
    const declared = readDeclared(definition)
    read = { declared, ordered: orderInputs(declared, definition) }
    known.set(definition, read)
  }
  return read
}

/** In the order that the class asks for, required inputs first; those that the page adds come last. */
export function orderedInputs(definition: NodeDefinition): readonly EditorInput[] {
  return inputsOf(definition).ordered
}

/** By name, in the order of declaration. */
export function declaredInputs(definition: NodeDefinition): ReadonlyMap<string, EditorInput> {
  return inputsOf(definition).declared
}

function orderInputs(declared: ReadonlyMap<string, EditorInput>, definition: NodeDefinition): EditorInput[] {
  const order = definition.input_order as NodeDefinition['input_order'] | undefined
  const ordered: EditorInput[] = []
  const place = (names: readonly string[] | undefined, isOptional: boolean) => {
    for (const name of names ?? []) {
      const input = declared.get(name)
      if (input !== undefined && input.isOptional === isOptional) ordered.push(input)
    }
  }
  place(order?.['required'], false)
  place(order?.['optional'], true)
  const placed = new Set(ordered)
  return [...ordered, ...[...declared.values()].filter((input) => !placed.has(input))]
}

/** An optional input takes the place of a required one of the same name. */
function readDeclared(definition: NodeDefinition): ReadonlyMap<string, EditorInput> {
  const declared = new Map<string, EditorInput>()
  const required = { ...definition.input.required, ...addedByPage(definition) }
  for (const [name, spec] of Object.entries(required)) declared.set(name, toEditorInput(name, spec, false))
  for (const [name, spec] of Object.entries(definition.input.optional ?? {})) {
    declared.set(name, toEditorInput(name, spec, true))
  }
  return declared
}

const WITH_PLAYER: ReadonlySet<string> = new Set([
  'LoadAudio',
  'SaveAudio',
  'PreviewAudio',
  'SaveAudioMP3',
  'SaveAudioOpus',
  'SaveAudioAdvanced',
])
const WITH_MODEL_VIEW: ReadonlySet<string> = new Set(['SaveGLB', 'Preview3D'])
const PICTURE_UPLOADS = ['image_upload', 'video_upload', 'animated_image_upload']

function addedByPage({ name, input }: NodeDefinition): Record<string, InputSpec> {
  const added: Record<string, InputSpec> = {}
  const { required = {} } = input
  if (WITH_PLAYER.has(name)) added['audioUI'] = ['AUDIO_UI', {}]
  if (required['audio']?.[1]?.['audio_upload'] === true) added['upload'] = ['AUDIOUPLOAD', {}]
  if (Object.values(required).some(isPictureUpload)) added['upload'] = ['IMAGEUPLOAD', {}]
  if (WITH_MODEL_VIEW.has(name)) added['image'] = ['PREVIEW_3D']
  if (name === 'Load3DAdvanced') added['viewport_state'] = ['LOAD_3D_ADVANCED', {}]
  return added
}

function isPictureUpload([type, options]: InputSpec): boolean {
  if (typeof type === 'string' && type !== 'COMBO') return false
  return PICTURE_UPLOADS.some((name) => options?.[name] === true)
}
