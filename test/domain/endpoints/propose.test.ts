import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type JsonObject, parseLosslessJson, stringifyLosslessJson } from '../../../lib/json/lossless-json.ts'
import { fillGraph } from '../../../src/domain/endpoints/fill-graph.ts'
import { createPropose } from '../../../src/domain/endpoints/propose/propose.ts'
import { RECORDED_ON, readEditorPairs } from '../../support/workflows/editor-pairs.ts'
import { catalog, file, input, node, output } from '../workflows/convert/convert-rig.ts'
import { examplesOf, find, kindsOf, namesOf, picture, placesOf, portrait, proposed } from './propose-rig.ts'

const text = (value: unknown) => stringifyLosslessJson(value as JsonObject)

test('for every pair of the editor, the examples of all inputs and candidates make exactly the prompt of the editor', async () => {
  const propose = createPropose({ catalog: () => catalog, clock: { now: () => RECORDED_ON }, random: () => 0 })
  for (const { name, ui, prompt } of readEditorPairs()) {
    const { graph, inputs, candidates } = await propose(ui, null)
    const all = [...inputs, ...candidates]
    const filled = fillGraph(graph, all, examplesOf(all))
    assert.deepEqual(JSON.parse(text(filled)), JSON.parse(text(prompt)), name)
    assert.equal(new Set(namesOf(all)).size, all.length, `${name}: every name once`)
    const places = all.flatMap(placesOf)
    assert.equal(new Set(places).size, places.length, `${name}: every place once`)
    for (const each of namesOf(all)) assert.match(each, /^[a-z][a-z0-9_]{0,63}$/, name)
  }
})

test('a graph in API format becomes inputs that a stranger understands', async () => {
  const proposal = await proposed(portrait())
  const names = ['prompt', 'negative_prompt', 'width', 'height', 'batch_size', 'steps', 'cfg', 'denoise', 'seed']
  assert.deepEqual(namesOf(proposal.inputs), names)
  assert.equal(find(proposal, 'negative_prompt', 'text').default, 'blurry')
  assert.deepEqual(namesOf(proposal.candidates), ['checkpoint', 'sampler_name', 'scheduler', 'filename_prefix'])
  assert.deepEqual(kindsOf(proposal.outputs), ['image: image'])
  assert.deepEqual(proposal.required.weights, [{ folder: 'checkpoints', name: 'base.safetensors' }])
  assert.ok(proposal.required.classes.includes('KSampler'))
  assert.equal(proposal.missing.weights[0].name, 'base.safetensors')
})

test('types and bounds are those of the classes', async () => {
  const proposal = await proposed(portrait())
  const { minimum, maximum, step } = find(proposal, 'width', 'integer')
  assert.deepEqual([minimum, maximum, step], [16, 16384, 8])
  assert.equal(find(proposal, 'cfg', 'number').maximum, 100)
  assert.equal(find(proposal, 'seed', 'seed').maximum, 18446744073709551615n)
  assert.equal(find(proposal, 'checkpoint', 'choice').isOpen, true)
  assert.equal(find(proposal, 'sampler_name', 'choice').isOpen, false)
  assert.match(find(proposal, 'steps', 'integer').description, /steps/)
})

test('a seed beyond what a double holds stays exact', async () => {
  const saved = text(portrait()).replace('"seed":7', '"seed":18446744073709551557')
  const { graph, inputs } = await proposed(parseLosslessJson(saved))
  assert.equal(inputs.find(({ name }) => name === 'seed')?.example, 18446744073709551557n)
  assert.equal(text(fillGraph(graph, inputs, examplesOf(inputs))), saved)
})

test('a value outside of the bounds of its class is kept, because the editor would send it', async () => {
  const graph = portrait()
  const sampler = graph['5'] as { inputs: JsonObject }
  sampler.inputs['steps'] = 20_000
  sampler.inputs['sampler_name'] = 'of_an_old_version'
  const proposal = await proposed(graph)
  assert.equal(find(proposal, 'steps', 'integer').maximum, 20_000)
  assert.equal(find(proposal, 'sampler_name', 'choice').choices[0], 'of_an_old_version')
})

test('values of calls go to their places, and nothing else changes', async () => {
  const { graph, inputs } = await proposed(portrait())
  const before = text(graph)
  const filled = fillGraph(graph, inputs, { prompt: 'a cat', width: 640 })
  assert.equal(text(filled), before.replace('a fox', 'a cat').replace('"width":512', '"width":640'))
  assert.equal(text(graph), before)
})

test('the place of a choice in its own list goes with it', () => {
  const options = { option1: 'soft', option2: 'hard', option3: '' }
  const graph = { '1': { class_type: 'CustomCombo', inputs: { choice: 'soft', index: 0, ...options } } }
  const inputs = [{ name: 'edge', places: [{ nodeId: '1', input: 'choice' }] }]
  assert.deepEqual(fillGraph(graph, inputs, { edge: 'soft' }), graph)
  assert.deepEqual((fillGraph(graph, inputs, { edge: 'hard' })['1'] as JsonObject)['inputs'], {
    ...{ choice: 'hard', index: 1 },
    ...options,
  })
})

test('a file is required, and its kind and name follow from what loads it and where it goes', async () => {
  const proposal = await proposed({
    '1': { class_type: 'LoadImage', inputs: { image: 'a.png' } },
    '2': { class_type: 'LoadImage', inputs: { image: 'b.png' } },
    '3': { class_type: 'LoadImageMask', inputs: { image: 'm.png', channel: 'alpha' } },
    '4': {
      class_type: 'ImageScale',
      inputs: { image: ['1', 0], upscale_method: 'lanczos', width: 8, height: 8, crop: 'disabled' },
    },
    '5': { class_type: 'WanFirstLastFrameToVideo', inputs: { start_image: ['4', 0], end_image: ['2', 0] } },
    '6': { class_type: 'LoadVideo', inputs: { file: 'v.mp4' } },
    '7': { class_type: 'LoadAudio', inputs: { audio: 's.mp3' } },
    '8': { class_type: 'Load3D', inputs: { model_file: '3d/toy.glb', width: 8, height: 8 } },
  })
  const files = proposal.inputs.flatMap((each) => (each.type === 'file' ? [`${each.name}: ${each.kind}`] : []))
  assert.deepEqual(files, [
    ...['start_image: image', 'mask: mask', 'video: video', 'audio: audio', 'model: model3d', 'end_image: image'],
  ])
  assert.equal(find(proposal, 'start_image', 'file').isRequired, true)
  assert.equal(find(proposal, 'start_image', 'file').example, 'a.png')
})

test('a loader without a file is an input, too, and the graph stays as it is until a call gives one', async () => {
  const empty = {
    '1': { class_type: 'LoadImage', inputs: {} },
    '2': { class_type: 'LoadAudio', inputs: { audio: '' } },
  }
  const { graph, inputs } = await proposed(empty)
  assert.deepEqual(namesOf(inputs), ['image', 'audio'])
  assert.deepEqual(fillGraph(graph, inputs, examplesOf(inputs)), empty)
  const filled = fillGraph(graph, inputs, { image: 'x.png' })
  assert.deepEqual(filled['1'], { class_type: 'LoadImage', inputs: { image: 'x.png' } })
})

test('of a class that no engine describes, what the names say is proposed', async () => {
  const { inputs, candidates, missing } = await proposed({
    '1': { class_type: 'SomebodysPrompt', inputs: { prompt: 'a fox', seed: 5, strictness: 0.5, fast: true } },
    // Whose model brings inputs of its own along.
    '2': { class_type: 'SomebodysModel', inputs: { model: 'one', 'model.negative_prompt': 'blurry' } },
  })
  assert.deepEqual(
    inputs.map(({ name, type }) => `${name}: ${type}`),
    ['prompt: text', 'negative_prompt: text', 'seed: seed'],
  )
  assert.deepEqual(
    candidates.map(({ name, type }) => `${name}: ${type}`),
    ['strictness: number', 'fast: boolean', 'model: text'],
  )
  assert.equal(missing.classes[0].classType, 'SomebodysPrompt')
})

test('the title that its user gave a node is the name of its value', async () => {
  const proposal = await proposed(
    file([
      picture(1, 'a.png', { title: 'Load Image (Reference Image)' }),
      picture(2, 'b.png', { title: 'Step 2: upload your logo' }),
      node(3, 'PrimitiveInt', { title: 'Frame Count', widgets_values: [24, 'fixed'] }),
      node(4, 'KSampler', { title: '$variation', widgets_values: [3, 'fixed', 20, 8, 'euler', 'normal', 1] }),
    ]),
  )
  assert.deepEqual(placesOf(find(proposal, 'reference_image', 'file')), ['1.image'])
  assert.deepEqual(placesOf(find(proposal, 'logo', 'file')), ['2.image'])
  assert.equal(find(proposal, 'frame_count', 'integer').default, 24)
  assert.deepEqual(placesOf(find(proposal, 'variation', 'seed')), ['4.seed'])
})

test('a title that begins with $ makes an input even where App mode says which inputs there are', async () => {
  const saved = file([picture(1, 'a.png'), picture(2, 'b.png', { title: '$photo' }), picture(3, 'c.png')], [], {
    extra: { linearData: { inputs: [[1, 'image']] } },
  })
  assert.deepEqual(namesOf((await proposed(saved)).inputs), ['image', 'photo'])
})

test('titles in other languages keep their words, and the name is by what the value is for', async () => {
  const graph = portrait()
  const titled = (id: string, title: string) => {
    graph[id] = { ...(graph[id] as JsonObject), _meta: { title } }
  }
  titled('2', '正向提示词')
  titled('3', 'ネガティブプロンプト')
  graph['8'] = { class_type: 'LoadImage', inputs: { image: 'a.png' }, _meta: { title: '参考图 2' } }
  graph['9'] = { class_type: 'PrimitiveInt', inputs: { value: 3 }, _meta: { title: 'Größe' } }
  const proposal = await proposed(graph)
  assert.equal(find(proposal, 'prompt', 'text').title, '正向提示词')
  assert.equal(find(proposal, 'negative_prompt', 'text').title, 'ネガティブプロンプト')
  assert.equal(find(proposal, 'image', 'file').title, '参考图 2')
  assert.equal(find(proposal, 'grosse', 'integer').title, 'Größe')
})

test('a text that is emptied for the negative side is still the prompt', async () => {
  const graph = portrait()
  const { '3': _negative, ...rest } = graph
  const sampler = graph['5'] as { inputs: JsonObject }
  Object.assign(sampler.inputs, { positive: ['9', 0], negative: ['8', 0] })
  const { inputs } = await proposed({
    ...rest,
    '8': { class_type: 'ConditioningZeroOut', inputs: { conditioning: ['2', 0] } },
    '9': { class_type: 'FluxGuidance', inputs: { conditioning: ['10', 0], guidance: 3 } },
    '10': { class_type: 'ReferenceLatent', inputs: { conditioning: ['2', 0] } },
  })
  assert.equal(inputs[0].name, 'prompt')
})

test('words that a call has for itself are no names, and a second of the same name gets a number', async () => {
  const primitive = (title: string) => ({ class_type: 'PrimitiveString', inputs: { value: title }, _meta: { title } })
  const { inputs } = await proposed({ '1': primitive('version'), '2': primitive('Mood'), '3': primitive('mood') })
  assert.deepEqual(namesOf(inputs), ['version_value', 'mood', 'mood_2'])
})

test('a Primitive node is one input for all that it fills', async () => {
  const saved = file(
    [
      node(1, 'PrimitiveNode', { title: 'Side', outputs: [output('INT', 1, 2)], widgets_values: [640, 'fixed'] }),
      node(2, 'EmptyLatentImage', {
        inputs: [input('width', 'INT', 1, true), input('height', 'INT', 2, true)],
        widgets_values: [512, 512, 1],
      }),
    ],
    [
      [1, 1, 0, 2, 0],
      [2, 1, 0, 2, 1],
    ],
  )
  const proposal = await proposed(saved)
  const side = find(proposal, 'side', 'integer')
  assert.deepEqual(placesOf(side), ['2.width', '2.height'])
  assert.equal(side.default, 640)
  const filled = fillGraph(proposal.graph, proposal.inputs, { side: 800 })
  assert.deepEqual((filled['2'] as JsonObject)['inputs'], { width: 800, height: 800, batch_size: 1 })
})

/** Two nodes that show one subgraph with a text, a width and weights. */
const withSubgraph = (): JsonObject =>
  file(
    [
      node(1, 'sub', {
        title: 'Painter',
        inputs: [{ ...(input('text', 'STRING', null, true) as JsonObject), label: 'Scene' }],
        widgets_values: ['a fox', 512, 'base.safetensors'],
      }),
    ],
    [],
    {
      definitions: {
        subgraphs: [
          {
            id: 'sub',
            name: 'Paint',
            nodes: [
              node(10, 'CLIPTextEncode', {
                inputs: [input('clip', 'CLIP', 4), input('text', 'STRING', 1, true)],
                widgets_values: ['inner'],
              }),
              node(11, 'EmptyLatentImage', { inputs: [input('width', 'INT', 2, true)], widgets_values: [8, 9, 1] }),
              node(12, 'CheckpointLoaderSimple', {
                inputs: [input('ckpt_name', 'COMBO', 3, true)],
                outputs: [output('MODEL'), output('CLIP', 4), output('VAE')],
                widgets_values: ['inner.safetensors'],
              }),
              node(13, 'KSampler', { widgets_values: [5, 'randomize', 20, 8, 'euler', 'normal', 1] }),
            ],
            links: [
              { id: 1, origin_id: -10, origin_slot: 0, target_id: 10, target_slot: 1, type: 'STRING' },
              { id: 2, origin_id: -10, origin_slot: 1, target_id: 11, target_slot: 0, type: 'INT' },
              { id: 3, origin_id: -10, origin_slot: 2, target_id: 12, target_slot: 0, type: 'COMBO' },
              { id: 4, origin_id: 12, origin_slot: 1, target_id: 10, target_slot: 0, type: 'CLIP' },
            ],
            inputs: [
              { id: 'a', name: 'text', type: 'STRING', linkIds: [1] },
              { id: 'b', name: 'value_3', type: 'INT', linkIds: [2], label: 'picture width' },
              { id: 'c', name: 'ckpt_name', type: 'COMBO', linkIds: [3] },
            ],
            outputs: [],
          },
        ],
      },
    },
  )

test('what a subgraph shows are the inputs, by their labels; weights are candidates; a seed is one although it is not shown', async () => {
  const proposal = await proposed(withSubgraph())
  assert.deepEqual(namesOf(proposal.inputs), ['scene', 'picture_width', 'seed'])
  assert.deepEqual(placesOf(find(proposal, 'scene', 'text')), ['1:10.text'])
  assert.equal(find(proposal, 'picture_width', 'integer').default, 512)
  assert.equal(find(proposal, 'checkpoint', 'choice').default, 'base.safetensors')
  assert.ok(namesOf(proposal.candidates).includes('steps'))
})

test('an inner node may have the label, and what a subgraph hides and names in an old way is found', async () => {
  const saved = withSubgraph()
  const [host] = saved['nodes'] as JsonObject[]
  const [{ nodes }] = (saved['definitions'] as { subgraphs: { nodes: JsonObject[] }[] }).subgraphs
  host['inputs'] = []
  nodes[0]['inputs'] = [
    input('clip', 'CLIP', 4),
    { ...(input('text', 'STRING', 1, true) as JsonObject), label: 'Mood' },
  ]
  assert.deepEqual(namesOf((await proposed(saved)).inputs), ['mood', 'picture_width', 'seed'])
})

test('the results are what is saved, under the titles of their nodes; previews only if there is nothing else', async () => {
  const graph: JsonObject = {
    ...portrait(),
    '8': { class_type: 'PreviewImage', inputs: { images: ['6', 0] } },
    '9': {
      class_type: 'SaveImage',
      inputs: { images: ['6', 0], filename_prefix: 'x' },
      _meta: { title: 'Save 2x Image' },
    },
  }
  assert.deepEqual(kindsOf((await proposed(graph)).outputs), ['image: image', 'image_2x: image'])
  const { '7': _saved, '9': _second, ...onlyPreview } = graph
  assert.deepEqual(kindsOf((await proposed(onlyPreview)).outputs), ['image: image'])
  const kinds = await proposed({
    '1': { class_type: 'SaveVideo', inputs: { video: ['9', 0], filename_prefix: 'v' } },
    '2': { class_type: 'SaveAudioMP3', inputs: { audio: ['9', 1], filename_prefix: 'a', quality: 'V0' } },
    '3': { class_type: 'SaveGLB', inputs: { mesh: ['9', 2], filename_prefix: 'm' } },
    '4': { class_type: 'SaveText', inputs: { text: ['9', 3], filename_prefix: 't', format: 'txt' } },
    '9': { class_type: 'LoadVideo', inputs: { file: 'v.mp4' } },
  })
  assert.deepEqual(kindsOf(kinds.outputs), ['video: video', 'audio: audio', 'model: model3d', 'text: text'])
})
