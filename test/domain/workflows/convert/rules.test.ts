/** The editor's rules one by one, each in the smallest file that shows it. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { NodeDefinition } from '../../../../engine/graph/node-catalog.ts'
import { catalogOf } from '../../../../engine/graph/object-info.ts'
import type { JsonObject, JsonValue } from '../../../../lib/json/lossless-json.ts'
import { convertWorkflow } from '../../../../src/domain/workflows/convert/convert-file.ts'
import {
  catalog,
  checkpoint,
  convert,
  file,
  input,
  inputsOf,
  NOW,
  node,
  output,
  refusal,
  type WireLink,
} from './convert-rig.ts'

describe('links', () => {
  test('pass Reroute nodes and bypassed nodes of a matching type, and end at muted ones', () => {
    const nodes = (mode: number) => [
      checkpoint(1, 1),
      node(2, 'Reroute', { inputs: [input('', '*', 1)], outputs: [output('MODEL', 2)] }),
      node(3, 'LoraLoader', {
        mode,
        inputs: [input('model', 'MODEL', 2), input('clip', 'CLIP', null)],
        outputs: [output('MODEL', 3), output('CLIP')],
        widgets_values: ['x.safetensors', 1, 1],
      }),
      node(4, 'ModelSave', { inputs: [input('model', 'MODEL', 3)], widgets_values: ['x'] }),
    ]
    const links: WireLink[] = [
      [1, 1, 0, 2, 0],
      [2, 2, 0, 3, 0],
      [3, 3, 0, 4, 0],
    ]
    assert.deepEqual(inputsOf(file(nodes(0), links))['4'], { filename_prefix: 'x', model: ['3', 0] })
    assert.deepEqual(inputsOf(file(nodes(4), links))['4'], { filename_prefix: 'x', model: ['1', 0] })
    assert.deepEqual(inputsOf(file(nodes(2), links))['4'], { filename_prefix: 'x' })
  })

  test('may be objects, in files of version 1 and anywhere else', () => {
    const save = node(2, 'ModelSave', { inputs: [input('model', 'MODEL', 9)], widgets_values: ['x'] })
    const link = { id: 9, origin_id: 1, origin_slot: 0, target_id: 2, target_slot: 0, type: 'MODEL' }
    for (const version of [1, 0.4]) {
      const saved = { nodes: [checkpoint(1, 9), save], links: [link], version, floatingLinks: [], reroutes: [] }
      assert.deepEqual(inputsOf(saved)['2'], { filename_prefix: 'x', model: ['1', 0] })
    }
  })

  test('that lead nowhere or in a circle are refused at the node', () => {
    const save = node(2, 'ModelSave', { inputs: [input('model', 'MODEL', 9)], widgets_values: ['x'] })
    assert.equal(refusal(file([save])).reason, 'broken_link')
    assert.match(refusal(file([save], [[9, 7, 0, 2, 0]])).message, /input model of node 2/)
    const loop = [
      node(1, 'Reroute', { inputs: [input('', '*', 1)], outputs: [output('*', 2)] }),
      node(2, 'Reroute', { inputs: [input('', '*', 2)], outputs: [output('*', 1, 3)] }),
      node(3, 'PreviewAny', { inputs: [input('source', '*', 3)] }),
    ]
    assert.equal(
      refusal(
        file(loop, [
          [1, 2, 0, 1, 0],
          [2, 1, 0, 2, 0],
          [3, 2, 0, 3, 0],
        ]),
      ).reason,
      'endless_link',
    )
  })
})

describe('values', () => {
  test('follow the widgets of the class, with those that belong to the editor alone', () => {
    const values = [5, 'randomize', 20, 8, 'euler', 'simple', 1]
    const { 1: sampler } = inputsOf(file([node(1, 'KSampler', { widgets_values: values })]))
    assert.deepEqual(sampler, { seed: 5, steps: 20, cfg: 8, sampler_name: 'euler', scheduler: 'simple', denoise: 1 })
  })

  test('that an old editor kept for inputs which only take links are dropped', () => {
    const definition = catalog.find('EmptyLatentImage') as NodeDefinition
    const required = { a: ['STRING', { forceInput: true }], b: ['STRING', {}] } as const
    const own = catalogOf({ Forced: { ...definition, name: 'Forced', input: { required }, input_order: {} } })
    const forced = (...values: string[]) =>
      convertWorkflow(file([node(1, 'Forced', { widgets_values: values })]), {
        catalog: own,
        now: NOW,
        random: () => 0,
      })
    for (const values of [['old', 'kept'], ['kept']]) {
      assert.deepEqual((forced(...values).workflow['1'] as JsonObject)['inputs'], { b: 'kept' })
    }
  })

  test('come by name where the file has no list', () => {
    const named = { widgets_values_named: { width: 8, height: 9, batch_size: 2 } }
    assert.deepEqual(inputsOf(file([node(1, 'EmptyLatentImage', named)]))['1'], { width: 8, height: 9, batch_size: 2 })
    assert.deepEqual(inputsOf(file([node(1, 'EmptyLatentImage')]))['1'], { width: 512, height: 512, batch_size: 1 })
  })

  test('of a dynamic combo bring the inputs of what is chosen, and drop links to others', () => {
    const resize = (choice: string, values: JsonValue[]) =>
      node(2, 'ResizeImageMaskNode', {
        inputs: [
          input('input', 'IMAGE', null),
          input('resize_type', 'COMBO', null, true),
          input('resize_type.multiplier', 'FLOAT', 1, true),
        ],
        widgets_values: [choice, ...values],
      })
    const number = node(1, 'PrimitiveFloat', { outputs: [output('FLOAT', 1)], widgets_values: [2] })
    const links: WireLink[] = [[1, 1, 0, 2, 2]]
    const scaled = inputsOf(file([number, resize('scale by multiplier', [1, 'area'])], links))['2']
    assert.deepEqual(scaled['resize_type.multiplier'], ['1', 0])
    const sized = inputsOf(file([number, resize('scale dimensions', [640, 480, 'center', 'area'])], links))['2']
    assert.deepEqual([sized['resize_type.width'], sized['resize_type.height']], [640, 480])
    assert.equal(sized['resize_type.multiplier'], undefined)
  })

  test('of a Primitive node go into the widgets that it is connected to, within their bounds', () => {
    const primitive = node(1, 'PrimitiveNode', { outputs: [output('INT', 1)], widgets_values: [100_000, 'fixed'] })
    const latent = node(2, 'EmptyLatentImage', {
      inputs: [input('width', 'INT', 1, true)],
      widgets_values: [64, 64, 1],
    })
    assert.equal(inputsOf(file([primitive, latent], [[1, 1, 0, 2, 0]]))['2']['width'], 16384)
  })

  test('that are lists are wrapped, because a list is a link', () => {
    const { 1: compare } = inputsOf(file([node(1, 'ImageCompare')]))
    assert.deepEqual(compare, { compare_view: { __value__: ['', ''] } })
  })

  test('keep whole numbers whole, and every digit of large ones', () => {
    const saved = file([node(1, 'RandomNoise', { widgets_values: [18446744073709551615n, 'fixed'] })])
    assert.equal(inputsOf(saved)['1']['noise_seed'], 18446744073709551615n)
  })
})

describe('texts', () => {
  const save = (prefix: string) => node(2, 'SaveImage', { widgets_values: [prefix] })

  test('in names of files get dates and values of other nodes', () => {
    const latent = node(1, 'EmptyLatentImage', { title: 'Size', widgets_values: [8, 9, 1] })
    const name = (prefix: string) => inputsOf(file([latent, save(prefix)]))['2']['filename_prefix']
    assert.equal(name('%date:yyyy-MM-dd hhmmss%_%date:d.M.yy%'), '2026-02-03 040506_3')
    assert.equal(name('%EmptyLatentImage.width%x%Size.height%'), '8x9')
    assert.equal(name('%Nobody.width% %width% 100%'), '%Nobody.width% %width% 100%')
  })

  test('with alternatives get one of them, and lose comments', () => {
    const encode = (text: string) => file([node(1, 'CLIPTextEncode', { widgets_values: [text] })])
    const { workflow, warnings } = convert(
      encode('a {cat|{big|small} dog} // note\n\\{kept\\} {one} /* gone */'),
      () => 0.99,
    )
    assert.equal(((workflow['1'] as JsonObject)['inputs'] as JsonObject)['text'], 'a small dog \n{kept} one ')
    assert.match(warnings[0].message, /at random/)
    assert.deepEqual(convert(encode('{plain} text')).warnings, [])
  })
})
