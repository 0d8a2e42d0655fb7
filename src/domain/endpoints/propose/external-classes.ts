/**
 * The node classes by which workflows for comfy-deploy declare inputs and outputs, as far as a saved file needs them: which values
 * they have, and in which order. No engine needs to have them.
 */
import type { InputSpec, NodeCatalog, NodeDefinition } from '../../../../engine/graph/node-catalog.ts'
import type { FileKind } from '../endpoint.ts'

export type ValueType = 'text' | 'boolean' | 'integer' | 'number' | 'seed' | 'choice' | 'weights'

export interface ExternalClass {
  readonly type: ValueType | FileKind
  /** Which input has the value of the file. */
  readonly value: string | null
  /** Its widgets and sockets in the order of the class: `name:TYPE`, behind the bar the optional ones. */
  readonly inputs: string
  /** The type that it makes. */
  readonly output: string
}

const SAID = 'display_name:STRING description:STRING'
const IN = 'ComfyUIDeployExternal'
export const OUT = 'ComfyDeployOutput'
const text: ExternalClass = {
  type: 'text',
  value: 'default_value',
  inputs: `| default_value:STRING ${SAID}`,
  output: 'STRING',
}
const number = (type: ValueType, word: string, bounds = ''): ExternalClass => ({
  type,
  value: 'default_value',
  inputs: `| default_value:${word} ${bounds} ${SAID}`,
  output: word,
})
const bounds = (word: string) => `min_value:${word} max_value:${word}`
const picture = (inputs: string): ExternalClass => ({ type: 'image', value: null, inputs, output: 'IMAGE' })
const SIZES =
  'force_rate:INT force_size:COMBO custom_width:INT custom_height:INT frame_load_cap:INT skip_first_frames:INT select_every_nth:INT'

export const CLASSES: ReadonlyMap<string, ExternalClass> = new Map<string, ExternalClass>([
  [`${IN}Text`, text],
  [`${IN}TextAny`, { ...text, output: '*' }],
  [`${IN}TextSingleLine`, text],
  [`${IN}TextList`, text],
  [
    `${IN}Boolean`,
    { type: 'boolean', value: 'default_value', inputs: `default_value:BOOLEAN | ${SAID}`, output: 'BOOLEAN' },
  ],
  [`${IN}Number`, number('number', 'FLOAT')],
  [`${IN}NumberInt`, number('integer', 'INT')],
  [`${IN}NumberSlider`, number('number', 'FLOAT', bounds('FLOAT'))],
  [`${IN}NumberSliderInt`, number('integer', 'INT', bounds('INT'))],
  [
    `${IN}Seed`,
    { type: 'seed', value: 'default_value', inputs: `default_value:INT ${bounds('INT')} | ${SAID}`, output: 'INT' },
  ],
  [
    `${IN}Enum`,
    { type: 'choice', value: 'default_value', inputs: `| default_value:STRING options:STRING ${SAID}`, output: '*' },
  ],
  [
    `${IN}Checkpoint`,
    { type: 'weights', value: 'default_value', inputs: `| default_value:COMBO ${SAID}`, output: '*' },
  ],
  [
    `${IN}Lora`,
    {
      type: 'weights',
      value: 'default_lora_name',
      inputs: `| default_lora_name:COMBO lora_save_name:STRING ${SAID} lora_url:STRING bearer_token:STRING`,
      output: '*',
    },
  ],
  [
    `${IN}FaceModel`,
    {
      type: 'weights',
      value: 'default_face_model_name',
      inputs: `| default_face_model_name:STRING face_model_save_name:STRING ${SAID} face_model_url:STRING`,
      output: '*',
    },
  ],
  [`${IN}Image`, picture(`| default_value:IMAGE ${SAID} default_value_url:STRING`)],
  [`${IN}ImageAlpha`, picture(`| default_value:IMAGE ${SAID}`)],
  [`${IN}ImageBatch`, picture(`images:STRING | default_value:IMAGE ${SAID}`)],
  [`${IN}EXR`, picture(`exr_file:STRING tonemap:COMBO | default_image:IMAGE default_mask:MASK ${SAID}`)],
  [
    `${IN}Video`,
    {
      type: 'video',
      value: 'default_video',
      inputs: `${SIZES} | meta_batch:VHS_BatchManager vae:VAE default_video:COMBO ${SAID} default_value_url:STRING`,
      output: 'IMAGE',
    },
  ],
  [
    `${IN}Vid`,
    {
      type: 'file',
      value: 'default_value',
      inputs: '| meta_batch:VHS_BatchManager default_value:COMBO',
      output: 'STRING',
    },
  ],
  [
    `${IN}Audio`,
    { type: 'audio', value: 'audio_file', inputs: `audio_file:STRING | default_value:AUDIO ${SAID}`, output: 'AUDIO' },
  ],
  [`${IN}File`, { type: 'file', value: null, inputs: `| ${SAID} file_url:STRING`, output: '*' }],
])

/** What they take, in the same form. */
export const OUTPUTS: ReadonlyMap<string, string> = new Map([
  [`${OUT}Image`, 'images:IMAGE filename_prefix:STRING file_type:COMBO quality:INT | output_id:STRING'],
  [`${OUT}Text`, 'text:* filename_prefix:STRING file_type:COMBO | output_id:STRING'],
  [`${OUT}File`, 'file_path:* | output_id:STRING'],
  [`${OUT}EXR`, 'images:IMAGE filename_prefix:STRING | output_id:STRING'],
])

/** The catalog and, where no engine has them, the declarations of these nodes: files may list values without names. */
export function withExternalClasses(catalog: NodeCatalog): NodeCatalog {
  return {
    ...catalog,
    find: (classType) => catalog.find(classType) ?? definitionOf(classType),
  }
}

const made = new Map<string, NodeDefinition>()

function definitionOf(classType: string): NodeDefinition | null {
  const known = CLASSES.get(classType)
  const inputs = known === undefined ? OUTPUTS.get(classType) : `input_id:STRING ${known.inputs}`
  if (inputs === undefined) return null
  let definition = made.get(classType)
  if (definition === undefined) {
    const [required, optional] = inputs.split('|').map(readSpecs)
    const output = known === undefined ? [] : [known.output]
    definition = {
      name: classType,
      display_name: classType,
      category: '',
      input: { required, optional },
      input_order: { required: Object.keys(required), optional: Object.keys(optional) },
      is_input_list: false,
      output,
      output_is_list: output.map(() => false),
      output_name: output,
      output_node: known === undefined,
      has_intermediate_output: false,
    }
    made.set(classType, definition)
  }
  return definition
}

function readSpecs(words: string): Record<string, InputSpec> {
  const pairs = words
    .split(' ')
    .filter(Boolean)
    .map((word) => word.split(':'))
  return Object.fromEntries(
    pairs.map(([name, type]): [string, InputSpec] => [name, type === 'COMBO' ? [type, { options: [] }] : [type, {}]]),
  )
}
