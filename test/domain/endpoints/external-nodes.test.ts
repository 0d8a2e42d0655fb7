import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { JsonObject } from '../../../lib/json/lossless-json.ts'
import { file, input, node, output } from '../workflows/convert/convert-rig.ts'
import { find, kindsOf, namesOf, placesOf, portrait, proposed } from './propose-rig.ts'

const inputsAt = (graph: JsonObject, id: string) => (graph[id] as JsonObject)['inputs'] as JsonObject
const external = (kind: string, inputs: JsonObject) => ({ class_type: `ComfyUIDeployExternal${kind}`, inputs })

/** The portrait with values that come from external nodes. */
function withExternals(): JsonObject {
  const graph = portrait()
  inputsAt(graph, '2')['text'] = ['20', 0]
  Object.assign(inputsAt(graph, '4'), { width: ['21', 0], height: ['21', 0] })
  Object.assign(inputsAt(graph, '5'), { seed: ['22', 0], cfg: ['23', 0], sampler_name: ['24', 0] })
  inputsAt(graph, '1')['ckpt_name'] = ['25', 0]
  return {
    ...graph,
    '20': external('Text', {
      input_id: 'scene',
      default_value: 'a fox',
      display_name: 'The scene',
      description: 'What to paint',
    }),
    '21': external('NumberSliderInt', { input_id: 'side', default_value: 512, min_value: 256, max_value: 99_999 }),
    '22': external('Seed', { input_id: 'chance', default_value: -1, min_value: 1, max_value: 4_294_967_295 }),
    '23': external('NumberSlider', { input_id: 'strictness', default_value: 7.5, min_value: 1, max_value: 12 }),
    '24': external('Enum', { input_id: 'method', default_value: 'euler', options: 'euler\nddim\n\neuler' }),
    '25': external('Checkpoint', { input_id: 'model', default_value: 'base.safetensors' }),
    '26': external('Image', { input_id: 'photo', display_name: '' }),
    '27': {
      class_type: 'ComfyDeployOutputImage',
      inputs: { images: ['26', 0], filename_prefix: 'out', file_type: 'webp', quality: 80, output_id: 'final picture' },
    },
  }
}

test('external nodes declare the inputs, and the graph has the plain values instead of them', async () => {
  const proposal = await proposed(withExternals())
  assert.deepEqual(namesOf(proposal.inputs), ['scene', 'side', 'chance', 'strictness', 'method', 'model', 'photo'])
  const scene = find(proposal, 'scene', 'text')
  assert.deepEqual([scene.title, scene.description, scene.default], ['The scene', 'What to paint', 'a fox'])
  const side = find(proposal, 'side', 'integer')
  assert.deepEqual(placesOf(side), ['4.width', '4.height'])
  assert.deepEqual([side.minimum, side.maximum], [256, 16384], 'no wider than the class')
  assert.equal(find(proposal, 'chance', 'seed').maximum, 4_294_967_295)
  assert.equal(inputsAt(proposal.graph, '5')['seed'], 1, 'a sampler takes no -1')
  assert.equal(find(proposal, 'strictness', 'number').maximum, 12)
  assert.deepEqual(find(proposal, 'method', 'choice').choices, ['euler', 'ddim'])
  assert.equal(find(proposal, 'model', 'choice').isOpen, true)
  assert.equal(inputsAt(proposal.graph, '4')['height'], 512)
  assert.ok(!Object.hasOwn(proposal.graph, '20'))
})

test('a file comes from a loader in the place of the node, and results from a node that every engine has', async () => {
  const { graph, inputs, outputs, missing } = await proposed(withExternals())
  assert.deepEqual(graph['26'], { inputs: { image: 'example.png' }, class_type: 'LoadImage' })
  assert.equal(inputs.find(({ name }) => name === 'photo')?.isRequired, true)
  assert.equal((graph['27'] as JsonObject)['class_type'], 'SaveImage')
  assert.deepEqual(kindsOf(outputs), ['final_picture: image'])
  assert.deepEqual(missing.classes, [])
})

test('a video becomes a loader and its parts, with the links moved', async () => {
  const { graph, inputs, warnings } = await proposed({
    '1': external('Video', { input_id: 'clip', default_video: 'dance.mp4' }),
    '2': { class_type: 'CreateVideo', inputs: { images: ['1', 0], audio: ['1', 2], fps: 24 } },
    '3': { class_type: 'SaveVideo', inputs: { video: ['2', 0], filename_prefix: 'v' } },
    '4': { class_type: 'PreviewAny', inputs: { source: ['1', 3] } },
  })
  assert.deepEqual(inputsAt(graph, '2'), { images: ['1', 0], audio: ['1', 1], fps: 24 })
  assert.deepEqual(inputsAt(graph, '1'), { video: ['1_video', 0] })
  assert.deepEqual(placesOf(inputs[0]), ['1_video.file'])
  assert.equal(warnings[0].nodeId, '4')
})

test('a saved file of comfy-deploy needs none of its nodes on any engine', async () => {
  const proposal = await proposed(
    file(
      [
        node(1, 'ComfyUIDeployExternalText', {
          outputs: [output('STRING', 1)],
          widgets_values: ['input_text', 'a fox', 'Prompt of the day', 'Say it'],
        }),
        node(3, 'ComfyDeployOutputImage', {
          inputs: [input('images', 'IMAGE', 2)],
          widgets_values: ['out', 'webp', 80, 'final'],
        }),
        node(4, 'EmptyImage', { outputs: [output('IMAGE', 2)], widgets_values: [8, 8, 1, 0] }),
        node(2, 'CLIPTextEncode', {
          inputs: [input('clip', 'CLIP', null), input('text', 'STRING', 1, true)],
          widgets_values: ['old'],
        }),
      ],
      [
        [1, 1, 0, 2, 1],
        [2, 4, 0, 3, 0],
      ],
    ),
  )
  const [only] = proposal.inputs
  assert.deepEqual(
    [only.name, only.title, only.description, only.example],
    ['input_text', 'Prompt of the day', 'Say it', 'a fox'],
  )
  assert.deepEqual(kindsOf(proposal.outputs), ['final: image'])
  assert.deepEqual(inputsAt(proposal.graph, '3'), { images: ['4', 0], filename_prefix: 'out' })
  assert.deepEqual(proposal.graph['2'], {
    inputs: { text: 'a fox' },
    class_type: 'CLIPTextEncode',
    _meta: { title: 'CLIP Text Encode (Prompt)' },
  })
})

test('a declaration that nothing uses is said, and makes no input', async () => {
  const { inputs, warnings } = await proposed({
    ...portrait(),
    '20': external('Text', { input_id: 'idle', default_value: '' }),
  })
  assert.ok(!namesOf(inputs).includes('idle'))
  assert.equal(warnings[0].nodeId, '20')
})

test('two nodes of one id are one input; with another value of their own they are two', async () => {
  const twice = (value: string) => ({
    '1': external('Text', { input_id: 'scene', default_value: 'a fox' }),
    '2': external('Text', { input_id: 'scene', default_value: value }),
    '3': { class_type: 'CLIPTextEncode', inputs: { text: ['1', 0] } },
    '4': { class_type: 'CLIPTextEncode', inputs: { text: ['2', 0] } },
  })
  const [scene] = (await proposed(twice('a fox'))).inputs
  assert.deepEqual(placesOf(scene), ['3.text', '4.text'])
  assert.deepEqual(namesOf((await proposed(twice('a cat'))).inputs), ['scene', 'scene_2'])
})

test('a default that came over a link, or is of another type, is none: the caller must say the value', async () => {
  const proposal = await proposed({
    '1': external('Text', { input_id: 'scene', default_value: ['9', 0] }),
    '2': external('NumberInt', { input_id: 'side', default_value: 'wide' }),
    '3': { class_type: 'CLIPTextEncode', inputs: { text: ['1', 0] } },
    '4': { class_type: 'EmptyLatentImage', inputs: { width: ['2', 0], height: 8, batch_size: 1 } },
    '9': { class_type: 'PrimitiveString', inputs: { value: 'far away' } },
  })
  assert.deepEqual(
    proposal.inputs.map(({ name, type, isRequired }) => [name, type, isRequired]),
    [
      ['scene', 'text', true],
      ['side', 'integer', true],
    ],
  )
})
