import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readGraph } from '../../../engine/graph/read-graph.ts'
import { type ValidateOptions, validate } from '../../../engine/graph/validate/validate.ts'
import type { NodeError } from '../../../engine/graph/validate/validation-result.ts'
import { type JsonObject, NumberText, parseLosslessJson } from '../../../lib/json/lossless-json.ts'
import { defineClass, recordedCatalog } from '../../support/engines/recorded-catalog.ts'

const catalog = recordedCatalog({
  Source: defineClass('Source', { output: ['IMAGE', 'MASK'] }),
  Pass: defineClass('Pass', { input: { optional: { image: ['IMAGE'] } }, output: ['IMAGE'] }),
  Join: defineClass('Join', {
    input: { optional: { a: ['IMAGE', { lazy: true }], b: ['IMAGE'], c: ['IMAGE'] } },
    output: ['IMAGE'],
    output_matchtypes: null,
  }),
  Sink: defineClass('Sink', { input: { required: { image: ['IMAGE'] } }, output_node: true }),
  Union: defineClass('Union', { output: ['IMAGE, LATENT'] }),
  Choices: defineClass('Choices', { output: [['x', 'y']] }),
  Values: defineClass('Values', {
    input: {
      required: {},
      optional: {
        int: ['INT', { min: 0, max: 18446744073709551615n }],
        float: ['FLOAT', { min: new NumberText('0.5'), max: 2 }],
        string: ['STRING', {}],
        boolean: ['BOOLEAN', {}],
        old: [['x', 1, true]],
        combo: ['COMBO', { options: ['x', 'y'] }],
        many: ['COMBO', { options: ['x', 'y'], multiselect: true }],
        long: ['COMBO', { options: Array.from({ length: 21 }, (_, index) => `model-${index}`) }],
        odd: ['WIDGET', { min: 1 }],
        any: ['*'],
        latent: ['LATENT'],
      },
      hidden: { secret: 'UNIQUE_ID' },
    },
    output_node: true,
  }),
  Slotted: defineClass('Slotted', {
    input: {
      optional: {
        guide: ['COMFY_DYNAMICSLOT_V3', { slotType: 'IMAGE', inputs: { required: { strength: ['FLOAT'] } } }],
      },
    },
    output_node: true,
  }),
  Grower: defineClass('Grower', {
    input: {
      required: {
        items: [
          'COMFY_AUTOGROW_V3',
          { template: { input: { required: { item: ['INT', { max: 9 }] } }, prefix: 'item', min: 2, max: 4 } },
        ],
      },
    },
    output_node: true,
  }),
})

function check(workflow: JsonObject, options: Partial<ValidateOptions> = {}) {
  return validate(readGraph(workflow), { catalog, ...options })
}

function node(class_type: string, inputs: JsonObject = {}): JsonObject {
  return { class_type, inputs }
}

function checkValues(inputs: JsonObject) {
  const result = check({ v: node('Values', inputs) })
  return { errors: result.nodeErrors.v?.errors ?? [], inputs: result.graph.get('v')?.inputs ?? {} }
}

function only(errors: readonly NodeError[]): NodeError {
  assert.equal(errors.length, 1)
  return errors[0]
}

test('primitives are converted as Python converts them and keep their digits otherwise', () => {
  const { errors, inputs } = checkValues({
    int: ' 1_000 ',
    float: 1,
    string: [1.5, 'x', null].length,
    boolean: 'false',
  })
  assert.deepEqual(errors, [])
  assert.deepEqual(inputs, { int: 1000, float: new NumberText('1.0'), string: '3', boolean: true })
  const untouched = { int: 18446744073709551615n, float: new NumberText('0.50'), string: 'x', boolean: false }
  assert.deepEqual(checkValues(untouched).inputs, untouched)
})

test('a graph that needs no conversion comes back as the same object', () => {
  const graph = readGraph({ v: node('Values', { int: 5 }) })
  assert.equal(validate(graph, { catalog }).graph, graph)
})

test('validation never changes the graph that came in', () => {
  const graph = readGraph({ v: node('Values', { int: '5', any: { __value__: [1, 2, 3] } }) })
  const result = validate(graph, { catalog })
  assert.deepEqual(graph.get('v')?.inputs, { int: '5', any: { __value__: [1, 2, 3] } })
  assert.deepEqual(result.graph.get('v')?.inputs, { int: 5, any: [1, 2, 3] })
})

test('a value that cannot be converted is reported in Python words', () => {
  const float = only(checkValues({ float: 'x' }).errors)
  assert.equal(float.message, 'Failed to convert an input value to a FLOAT value')
  assert.equal(float.details, "float, x, could not convert string to float: 'x'")
  const int = only(checkValues({ int: { a: 1 } }).errors)
  assert.match(int.details, /^int, \{'a': 1\}, int\(\) argument must be .* not 'dict'$/)
  const infinite = only(checkValues({ int: new NumberText('1e999') }).errors)
  assert.equal(infinite.extra_info.exception_message, 'cannot convert float infinity to integer')
})

test('ranges print the bound as it is declared', () => {
  assert.equal(only(checkValues({ float: 0.25 }).errors).message, 'Value 0.25 smaller than min of 0.5')
  assert.equal(only(checkValues({ float: 3 }).errors).message, 'Value 3.0 bigger than max of 2')
  assert.equal(only(checkValues({ float: 'inf' }).errors).message, 'Value inf bigger than max of 2')
  assert.equal(
    only(checkValues({ int: 18446744073709551616n }).errors).message,
    'Value 18446744073709551616 bigger than max of 18446744073709551615',
  )
  assert.deepEqual(checkValues({ float: 'nan' }).errors, [])
})

test('membership uses Python equality', () => {
  assert.deepEqual(checkValues({ old: new NumberText('1.0'), combo: 'y' }).errors, [])
  assert.deepEqual(checkValues({ old: true }).errors, [])
  const error = only(checkValues({ old: 2 }).errors)
  assert.equal(error.details, "old: 2 not in ['x', 1, True]")
  assert.deepEqual(error.extra_info.input_config, [['x', 1, true], {}])
})

test('a multiple choice is checked element by element', () => {
  assert.deepEqual(checkValues({ many: { __value__: ['x', 'y'] } }).errors, [])
  const error = only(checkValues({ many: { __value__: ['x', 'z', 'w'] } }).errors)
  assert.equal(error.details, "many: 'z', 'w' not in ['x', 'y']")
})

test('a list of more than twenty choices is not sent back', () => {
  const error = only(checkValues({ long: 'nope' }).errors)
  assert.equal(error.details, "long: 'nope' not in (list of length 21)")
  assert.equal(error.extra_info.input_config, null)
})

test('hidden and unknown inputs are never checked', () => {
  assert.deepEqual(checkValues({ secret: 5, whatever: { deep: [1] } }).errors, [])
})

test('a constant for a socket passes, whatever it is', () => {
  assert.deepEqual(checkValues({ latent: 'text', any: null }).errors, [])
})

test('a bound on a value that has no order is an exception of the node', () => {
  const error = only(checkValues({ odd: 'x' }).errors)
  assert.equal(error.type, 'exception_during_validation')
  assert.equal(error.details, "'<' not supported between instances of 'str' and 'int'")
  assert.deepEqual(error.extra_info, { exception_type: 'TypeError', traceback: [] })
})

test('link types meet in one member, a wildcard, a match type or a list of choices', () => {
  const link = (source: string, input: string) =>
    check({ s: node(source), v: node('Values', { [input]: ['s', 0] }) }).nodeErrors.v?.errors[0]?.details ?? 'ok'
  assert.equal(link('Union', 'latent'), 'ok')
  assert.equal(link('Union', 'any'), 'ok')
  assert.equal(link('Union', 'int'), 'int, received_type(IMAGE, LATENT) mismatch input_type(INT)')
  assert.equal(link('Choices', 'combo'), 'ok')
  assert.equal(link('Choices', 'old'), "old, received_type(['x', 'y']) mismatch input_type(['x', 1, True])")
  assert.equal(link('ComfySwitchNode', 'latent'), 'ok')
})

test('a broken link is recorded on the node that holds it, as its consumer sees it', () => {
  const { nodeErrors } = check({ p: node('Pass', { image: ['99', 0] }), s: node('Sink', { image: ['p', 0] }) })
  assert.deepEqual(Object.keys(nodeErrors), ['p'])
  assert.deepEqual(only(nodeErrors.p.errors), {
    type: 'exception_during_inner_validation',
    message: 'Exception when validating inner node',
    details: "'99'",
    extra_info: {
      input_name: 'image',
      input_config: ['IMAGE', {}],
      exception_message: "'99'",
      exception_type: 'KeyError',
      traceback: [],
      linked_node: ['p', 0],
    },
  })
})

test('a broken link of an output is recorded on the output', () => {
  const { nodeErrors, error } = check({ s: node('Sink', { image: ['99', 0] }) })
  assert.equal(only(nodeErrors.s.errors).type, 'exception_during_validation')
  assert.equal(error?.details, "Exception when validating node: '99'")
})

test('slots are read as Python indexes', () => {
  const slot = (class_type: string, value: string) => {
    const text = `{"a":{"class_type":"${class_type}","inputs":{}},"s":{"class_type":"Sink","inputs":{"image":["a",${value}]}}}`
    const result = check(parseLosslessJson(text) as JsonObject)
    return result.nodeErrors.s?.errors[0]?.details ?? JSON.stringify(result.graph.get('s')?.inputs.image)
  }
  assert.equal(slot('Source', '0'), '["a",0]')
  assert.equal(slot('Source', '-2'), '["a",0]')
  assert.equal(slot('Source', 'false'), '["a",0]')
  assert.equal(slot('Source', '2'), 'tuple index out of range')
  assert.equal(slot('Source', '-3'), 'tuple index out of range')
  assert.equal(slot('Join', '1'), 'list index out of range')
  assert.equal(slot('Source', '0.0'), 'tuple indices must be integers or slices, not float')
  assert.equal(slot('Source', '"0"'), 'tuple indices must be integers or slices, not str')
  assert.equal(slot('Source', 'null'), 'tuple indices must be integers or slices, not NoneType')
  assert.equal(slot('Source', '99999999999999999999'), "cannot fit 'int' into an index-sized integer")
})

test('an id that is no string leads nowhere', () => {
  const linked = (id: JsonObject[string]) => only(check({ s: node('Sink', { image: [id, 0] }) }).nodeErrors.s.errors)
  assert.equal(linked(5).details, '5')
  assert.equal(linked(null).details, 'None')
  assert.equal(linked({}).details, "unhashable type: 'dict'")
  assert.equal(linked({}).extra_info.exception_type, 'TypeError')
})

test('lazy and optional links are validated too', () => {
  const { nodeErrors } = check({
    bad: node('ImageInvert'),
    j: node('Join', { a: ['bad', 0] }),
    s: node('Sink', { image: ['j', 0] }),
  })
  assert.equal(only(nodeErrors.bad.errors).type, 'required_input_missing')
  assert.deepEqual(nodeErrors.bad.dependent_outputs, ['s'])
})

test('nodes that no output reaches are never validated', () => {
  assert.deepEqual(
    check({ lost: node('ImageInvert'), a: node('Source'), s: node('Sink', { image: ['a', 0] }) }).nodeErrors,
    {},
  )
})

test('only the outputs that really depend on a faulty node are named', () => {
  const { nodeErrors, goodOutputs, ok } = check({
    bad: node('ImageInvert'),
    worse: node('ImageInvert'),
    p: node('Pass', { image: ['bad', 0] }),
    good: node('Source'),
    s1: node('Sink', { image: ['p', 0] }),
    s2: node('Sink', { image: ['bad', 0] }),
    s3: node('Sink', { image: ['worse', 0] }),
    s4: node('Sink', { image: ['good', 0] }),
  })
  assert.equal(ok, true)
  assert.deepEqual(goodOutputs, ['s4'])
  assert.deepEqual(nodeErrors.bad.dependent_outputs, ['s1', 's2'])
  assert.deepEqual(nodeErrors.worse.dependent_outputs, ['s3'])
  assert.equal('p' in nodeErrors, false)
})

test('a node of a cycle keeps its own errors after the cycle', () => {
  const { nodeErrors } = check({
    a: node('Join', { a: ['b', 0], b: ['b', 0, 1] }),
    b: node('Join', { a: ['a', 0] }),
    s: node('Sink', { image: ['a', 0] }),
  })
  assert.deepEqual(
    nodeErrors.a.errors.map(({ type }) => type),
    ['dependency_cycle', 'bad_linked_input'],
  )
  assert.equal(nodeErrors.b.errors[0].details, 'a (Join) -> b (Join) -> a (Join)')
  assert.deepEqual(nodeErrors.b.errors[0].extra_info, { node_id: 'b', cycle_nodes: ['a', 'b'] })
})

test('a node linked to itself is a cycle of one', () => {
  const { nodeErrors } = check({ a: node('Pass', { image: ['a', 0] }), s: node('Sink', { image: ['a', 0] }) })
  assert.equal(only(nodeErrors.a.errors).details, 'a (Pass) -> a (Pass)')
})

test('a node without a class, or of an unknown one, ends validation', () => {
  const nameless = check({ 7: { inputs: {} } }).error
  assert.equal(nameless?.type, 'missing_node_type')
  assert.match(nameless?.message ?? '', /^Node 'ID #7' has no class_type\./)
  assert.deepEqual(nameless?.extra_info, { node_id: '7', class_type: null, node_title: null })
  const unknown = check({ 7: node('Nope') }).error
  assert.deepEqual(unknown?.extra_info, { node_id: '7', class_type: 'Nope', node_title: 'Nope' })
})

test('targets select outputs; none, an empty list and strangers select nothing', () => {
  const workflow = { a: node('Source'), s: node('Sink', { image: ['a', 0] }) }
  assert.equal(check(workflow, { targets: [] }).error?.type, 'prompt_no_outputs')
  assert.equal(check(workflow, { targets: ['a', 'zzz'] }).error?.type, 'prompt_no_outputs')
  assert.deepEqual(check(workflow, { targets: ['s'] }).goodOutputs, ['s'])
  assert.equal(check({}).error?.type, 'prompt_no_outputs')
})

test('a choice reveals its own inputs, nested ones too', () => {
  const video = (inputs: JsonObject) =>
    check({
      e: node('EmptyImage', { width: 4, height: 4, batch_size: 1, color: 0 }),
      c: node('CreateVideo', { images: ['e', 0], fps: 8 }),
      v: node('SaveVideo', { video: ['c', 0], filename_prefix: 'x', ...inputs }),
    }).nodeErrors.v?.errors.map(({ type, details, extra_info }) => [type, details, extra_info.input_name]) ?? []
  const chosen = { format: 'mp4', 'format.codec': 'h264', 'format.codec.encoding': 're-encode' }
  assert.deepEqual(video({ ...chosen, 'format.codec.encoding.crf': 99, 'format.codec.encoding.color_space': 'auto' }), [
    ['value_bigger_than_max', 'format.codec.encoding.crf', 'format.codec.encoding.crf'],
  ])
  assert.deepEqual(video(chosen), [
    ['required_input_missing', 'crf', 'format.codec.encoding.crf'],
    ['required_input_missing', 'color_space', 'format.codec.encoding.color_space'],
  ])
  // Absent and unknown choices declare nothing: the node itself fails later.
  assert.deepEqual(video({}), [])
  assert.deepEqual(video({ format: 'gif', 'format.codec': 5 }), [])
})

test('a growing group needs its first members and checks the given others', () => {
  const grow = (inputs: JsonObject) => {
    const result = check({ g: node('Grower', inputs) })
    return result.nodeErrors.g?.errors.map(({ type, extra_info }) => `${type} ${extra_info.input_name}`) ?? []
  }
  assert.deepEqual(grow({ 'items.item0': 1, 'items.item1': 2 }), [])
  assert.deepEqual(grow({ 'items.item1': 1, 'items.item3': 10 }), [
    'required_input_missing items.item0',
    'value_bigger_than_max items.item3',
  ])
})

test('a dynamic slot declares its children only when it is given', () => {
  const slot = (inputs: JsonObject) =>
    check({ a: node('Source'), g: node('Slotted', inputs) }).nodeErrors.g?.errors.map(({ details }) => details) ?? []
  assert.deepEqual(slot({}), [])
  assert.deepEqual(slot({ guide: ['a', 0] }), ['strength'])
  assert.deepEqual(slot({ guide: ['a', 0], 'guide.strength': 1 }), [])
  assert.deepEqual(slot({ guide: ['a', 1], 'guide.strength': 1 }), [
    'guide, received_type(MASK) mismatch input_type(IMAGE)',
  ])
})

test('a class that was replaced is rewritten, one that exists never', () => {
  const gone = ['ImageBatch', 'ResizeImagesByLongerEdge']
  const newer = { ...catalog, find: (name: string) => (gone.includes(name) ? null : catalog.find(name)) }
  const workflow = {
    a: node('Source'),
    b: node('ImageBatch', { image1: ['a', 0], image2: ['a', 0] }),
    r: node('ResizeImagesByLongerEdge', { images: ['b', 0], longer_edge: '64' }),
    k: node('ImageScaleBy', { image: ['r', 0], upscale_method: 'area', scale_by: 2 }),
    s: node('Sink', { image: ['k', 0] }),
  }
  const { graph, ok } = check(workflow, { catalog: newer })
  assert.equal(ok, true)
  assert.deepEqual(graph.get('b'), {
    classType: 'BatchImagesNode',
    inputs: { 'images.image0': ['a', 0], 'images.image1': ['a', 0] },
    title: null,
  })
  assert.deepEqual(graph.get('r')?.inputs, { image: ['b', 0], largest_size: 64, upscale_method: 'lanczos' })
  assert.equal(graph.get('k')?.classType, 'ImageScaleBy')
})

test('self-checked inputs skip the choice check and ask the node instead', () => {
  const asked: unknown[] = []
  const result = check(
    { l: node('LoadImage', { image: 'x.png' }), s: node('Sink', { image: ['l', 0] }) },
    {
      checkInput: (...question) => {
        asked.push(question)
        return ''
      },
    },
  )
  assert.deepEqual(asked, [['LoadImage', 'image', 'x.png']])
  assert.equal(only(result.nodeErrors.l.errors).details, 'image')
})

test('ids and members with the names of object internals are ordinary', () => {
  const workflow = parseLosslessJson(
    '{"__proto__":{"class_type":"ImageInvert","inputs":{"__proto__":{"a":1}}},"constructor":{"class_type":"Sink","inputs":{"image":["__proto__",0]}}}',
  ) as JsonObject
  const { nodeErrors } = check(workflow)
  assert.deepEqual(Object.keys(nodeErrors), ['__proto__'])
  assert.equal(check({ s: node('Sink', { image: ['toString', 0] }) }).nodeErrors.s.errors[0].details, "'toString'")
})
