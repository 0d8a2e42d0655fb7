/** Values of inputs, and inputs that depend on others. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readGraph } from '../../../engine/graph/graph-json.ts'
import { validate } from '../../../engine/graph/validate/validate.ts'
import { type JsonObject, NumberText, parseLosslessJson } from '../../../lib/json/lossless-json.ts'
import { catalog, check, checkValues, node, only } from './validate-rig.ts'

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
