/** Geometry beyond the recordings: odd sizes, batches of different length, masks, boxes, failures and cancel. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Interrupted, NodeError } from '../../node/node-error.ts'
import { BUILT_IN_NODES } from '../../nodes/built-in.ts'
import { cropByBBoxes, drawBBoxes } from '../../nodes/geometry/boxes.ts'
import { centerCropImages, imageCropToMask, imageCropV2, randomCropImages } from '../../nodes/geometry/crop-images.ts'
import { resizeAndPadImage, resizeImageMask } from '../../nodes/geometry/resize-images.ts'
import { imageMergeTileList, imageStitch, splitImageToTileList } from '../../nodes/geometry/stitch-and-tile.ts'
import { getImageSize, imageFlip, imagePadForOutpaint, imageRotate } from '../../nodes/geometry/turn-and-pad.ts'
import type { Tensor } from '../../tensor/tensor.ts'
import type { Value } from '../../values/value.ts'
import { callNode, tensor, tensorFrom } from '../support/call-node.ts'

/** Every value tells where it is. */
const numbered = (shape: readonly number[]) => tensor(shape, (index) => index / 1000)
const plain = (shape: readonly number[], value: number) => tensor(shape, () => value)
const fails = (type: string, text: RegExp) => (error: unknown) =>
  error instanceof NodeError && error.exceptionType === type && text.test(error.message)

/** Comparing by hand: a report of thousands of differing values helps nobody. */
function isSame(a: Tensor, b: Tensor): boolean {
  return a.data.length === b.data.length && a.data.every((value, index) => value === b.data[index])
}

function pixel({ shape, data }: Tensor, x: number, y: number, frame = 0): number[] {
  const [, height, width, channels] = shape
  const at = ((frame * height + y) * width + x) * channels
  return [...data.subarray(at, at + channels)]
}

test('four quarter turns give the picture back, and two of them one half turn', async () => {
  const image = numbered([2, 37, 41, 3])
  const turned = (source: Tensor, rotation: string) => tensorFrom(imageRotate, { image: source, rotation })
  let current = image
  for (let i = 0; i < 4; i++) current = await turned(current, '90 degrees')
  assert.ok(isSame(current, image))
  const twice = await turned(await turned(image, '90 degrees'), '90 degrees')
  assert.ok(isSame(twice, await turned(image, '180 degrees')))
  const back = await turned(await turned(image, '90 degrees'), '270 degrees')
  assert.ok(isSame(back, image))
})

test('flipping twice changes nothing, and both flips together are a half turn', async () => {
  const image = numbered([1, 5, 7, 4])
  const flip = (source: Tensor, axis: string) => tensorFrom(imageFlip, { image: source, flip_method: axis })
  const upsideDown = await flip(image, 'x-axis: vertically')
  assert.deepEqual(pixel(upsideDown, 2, 0), pixel(image, 2, 4))
  assert.ok(isSame(await flip(upsideDown, 'x-axis: vertically'), image))
  const both = await flip(upsideDown, 'y-axis: horizontally')
  assert.ok(isSame(both, await tensorFrom(imageRotate, { image, rotation: '180 degrees' })))
})

test('a stitched batch repeats the last frame of the shorter one', async () => {
  const stitched = await tensorFrom(imageStitch, {
    image1: numbered([3, 2, 2, 3]),
    image2: tensor([2, 2, 2, 3], (index) => (index < 12 ? 0.25 : 0.75)),
    direction: 'right',
    match_image_size: false,
    spacing_width: 0,
    spacing_color: 'white',
  })
  assert.deepEqual(stitched.shape, [3, 2, 4, 3])
  assert.deepEqual(
    [0, 1, 2].map((frame) => pixel(stitched, 2, 0, frame)[0]),
    [0.25, 0.75, 0.75],
  )
})

test('an opaque picture beside a transparent one stays opaque where it is padded', async () => {
  const stitched = await tensorFrom(imageStitch, {
    image1: plain([1, 4, 1, 4], 0.5),
    image2: plain([1, 2, 1, 3], 0.5),
    direction: 'right',
    match_image_size: false,
    spacing_width: 1,
    spacing_color: 'black',
  })
  assert.deepEqual(stitched.shape, [1, 4, 4, 4])
  assert.deepEqual(pixel(stitched, 3, 0), [0, 0, 0, 1])
  assert.deepEqual(pixel(stitched, 3, 1), [0.5, 0.5, 0.5, 1])
  assert.deepEqual(pixel(stitched, 1, 0), [0, 0, 0, 1])
})

test('without a second image the first is passed on as it is', async () => {
  const image1 = numbered([1, 2, 2, 3])
  const rest = { direction: 'up', match_image_size: true, spacing_width: 4, spacing_color: 'red' }
  assert.equal(await tensorFrom(imageStitch, { image1, ...rest }), image1)
})

test('tiles put together again give the picture, whatever the overlap', async () => {
  const image = tensor([2, 150, 200, 3], (index) => (index % 97) / 97)
  for (const overlap of [0, 16, 63, 4096]) {
    const { outputs } = await callNode(splitImageToTileList, { image, tile_width: 64, tile_height: 80, overlap })
    const tiles = outputs[0] as Tensor[]
    assert.ok(tiles.every(({ shape }) => shape[1] === 80 && shape[2] === 64))
    const merged = await tensorFrom(imageMergeTileList, {
      image_list: tiles,
      final_width: [200],
      final_height: [150],
      overlap: [overlap],
    })
    merged.data.forEach((value, index) => {
      assert.ok(Math.abs(value - image.data[index]) < 1e-6)
    })
  }
})

test('a picture smaller than a tile is one smaller tile; missing tiles leave black', async () => {
  const image = plain([1, 10, 20, 3], 0.5)
  const { outputs } = await callNode(splitImageToTileList, { image, tile_width: 64, tile_height: 64, overlap: 8 })
  assert.deepEqual(
    (outputs[0] as Tensor[]).map(({ shape }) => shape),
    [[1, 10, 20, 3]],
  )
  const merged = await tensorFrom(imageMergeTileList, {
    image_list: [plain([1, 64, 64, 3], 0.5)],
    final_width: [100],
    final_height: [64],
    overlap: [0],
  })
  assert.deepEqual(pixel(merged, 63, 0), [0.5, 0.5, 0.5])
  assert.deepEqual(pixel(merged, 64, 0), [0, 0, 0])
})

test('tiles that do not fit together are refused', async () => {
  const tiles = [plain([1, 64, 64, 3], 0), plain([1, 64, 64, 4], 0)]
  const inputs = { image_list: tiles, final_width: [128], final_height: [64], overlap: [0] }
  await assert.rejects(callNode(imageMergeTileList, inputs), fails('RuntimeError', /cannot be merged/))
})

test('masks are resized like images, and a resize to nothing is refused, but for a mean, which is empty', async () => {
  const input = tensor([2, 4, 4], (index) => (index < 16 ? 0 : 1))
  const resized = await tensorFrom(resizeImageMask, {
    input,
    resize_type: 'scale by multiplier',
    'resize_type.multiplier': 0.5,
    scale_method: 'area',
  })
  assert.deepEqual(resized.shape, [2, 2, 2])
  assert.deepEqual([...resized.data], [0, 0, 0, 0, 1, 1, 1, 1])
  const tiny = { input, resize_type: 'scale by multiplier', 'resize_type.multiplier': 0.01 }
  for (const scale_method of ['bilinear', 'bicubic', 'nearest-exact']) {
    const call = callNode(resizeImageMask, { ...tiny, scale_method })
    await assert.rejects(call, fails('RuntimeError', /should be greater than 0/))
  }
  assert.deepEqual((await tensorFrom(resizeImageMask, { ...tiny, scale_method: 'area' })).shape, [2, 0, 0])
})

test('sizes that are already right, or cannot be, leave the picture alone', async () => {
  const input = numbered([1, 16, 24, 3])
  const to = (resizeType: string, member: string, value: Value) =>
    tensorFrom(resizeImageMask, {
      input,
      resize_type: resizeType,
      [`resize_type.${member}`]: value,
      scale_method: 'bilinear',
    })
  assert.equal(await to('scale to multiple', 'multiple', 8), input)
  assert.equal(await to('scale to multiple', 'multiple', 100), input)
  assert.equal(await to('scale width', 'width', 0), input)
  assert.deepEqual((await to('scale to multiple', 'multiple', 9)).shape, [1, 9, 18, 3])
  assert.deepEqual((await to('scale shorter dimension', 'shorter_size', 8)).shape, [1, 8, 12, 3])
})

test('one picture takes the size of another, cut to its shape', async () => {
  const resized = await tensorFrom(resizeImageMask, {
    input: tensor([1, 4, 8, 1], (index) => (index % 8) / 8),
    resize_type: 'match size',
    'resize_type.match': plain([1, 4, 4], 0),
    'resize_type.crop': 'center',
    scale_method: 'nearest-exact',
  })
  assert.deepEqual(resized.shape, [1, 4, 4, 1])
  assert.deepEqual([...resized.data.subarray(0, 4)], [0.25, 0.375, 0.5, 0.625])
})

test('a picture that is fitted into a frame sits in its middle', async () => {
  const fitted = await tensorFrom(resizeAndPadImage, {
    image: plain([2, 2, 4, 3], 0.5),
    target_width: 8,
    target_height: 9,
    padding_color: 'black',
    interpolation: 'nearest-exact',
  })
  assert.deepEqual(fitted.shape, [2, 9, 8, 3])
  assert.deepEqual(
    Array.from({ length: 9 }, (_, y) => pixel(fitted, 7, y, 1)[0]),
    [0, 0, 0.5, 0.5, 0.5, 0.5, 0, 0, 0],
  )
})

test('a box beyond the picture is cut off at its edge, and its preview goes with it', async () => {
  const image = numbered([1, 6, 8, 3])
  const { outputs, report } = await callNode(imageCropV2, { image, crop_region: { x: 100, y: 4, width: 5 } })
  assert.deepEqual((outputs[0] as Tensor).shape, [1, 2, 1, 3])
  assert.deepEqual([...(outputs[0] as Tensor).data], [...pixel(image, 7, 4), ...pixel(image, 7, 5)])
  assert.deepEqual(report?.animated, [{ kind: 'value', value: false }])
  assert.equal(report?.images.length, 1)
})

test('crops of training images never enlarge, and a seed decides where they are cut', async () => {
  const images = tensor([2, 9, 9, 3], (index) => (index % 243) / 255)
  assert.deepEqual((await tensorFrom(centerCropImages, { images, width: 20, height: 3 })).shape, [2, 3, 9, 3])
  const cut = (seed: number | bigint) => tensorFrom(randomCropImages, { images, width: 4, height: 4, seed })
  assert.ok(isSame(await cut(5), await cut(5n)))
  // Seeds count modulo 2^32 - 1.
  assert.ok(isSame(await cut(5), await cut(5n + 2n ** 32n - 1n)))
  const firstPixels = await Promise.all([1, 2, 3, 4, 5, 6].map(async (seed) => (await cut(seed)).data[0]))
  assert.ok(new Set(firstPixels).size > 1)
})

test('without room for feathering the outpainting mask is sharp', async () => {
  const pad = { left: 1, top: 0, right: 0, bottom: 0, feathering: 40 }
  const { outputs } = await callNode(imagePadForOutpaint, { image: plain([1, 2, 2, 3], 1), ...pad })
  assert.deepEqual([...(outputs[1] as Tensor).data], [1, 0, 0, 1, 0, 0])
  assert.deepEqual(pixel(outputs[0] as Tensor, 0, 0), [0.5, 0.5, 0.5])
})

test('the size of a batch is told as numbers and as text beside the node', async () => {
  const texts: string[] = []
  const { outputs } = await callNode(getImageSize, { image: plain([3, 2, 5, 3], 0) }, { texts })
  assert.deepEqual(outputs, [5, 2, 3])
  assert.deepEqual(texts, ['width: 5, height: 2\n batch size: 3'])
})

const cropInputs = { output_width: 64, output_height: 64, padding: 0, keep_aspect: 'stretch' }

test('boxes of a frame are cut out together; frames without boxes are left out', async () => {
  const image = tensor([3, 100, 100, 3], (index) => Math.floor(index / 30_000) / 4)
  const bboxes = [[{ x: 10, y: 10, width: 20, height: 20 }], [], [{ x: 0.7, y: 0, width: 50, height: 99.9 }]]
  const cropped = await tensorFrom(cropByBBoxes, { image, bboxes, ...cropInputs })
  assert.deepEqual(cropped.shape, [2, 64, 64, 3])
  assert.deepEqual([pixel(cropped, 5, 5, 0)[0], pixel(cropped, 5, 5, 1)[0]], [0, 0.5])
  assert.equal(await tensorFrom(cropByBBoxes, { image, bboxes: [], ...cropInputs }), image)
})

test('an empty box falls back to where a head would be, and a padded crop keeps its shape', async () => {
  const image = tensor([1, 100, 100, 1], (index) => (index % 100) / 100)
  const empty = { x: 50, y: 50, width: 0, height: 0 }
  const head = await tensorFrom(cropByBBoxes, { image, bboxes: empty, ...cropInputs })
  assert.ok(head.data[0] > 0.34 && head.data[63] < 0.65)
  const tall = { x: 0, y: 0, width: 25, height: 100 }
  const padded = await tensorFrom(cropByBBoxes, {
    image: plain([1, 100, 100, 3], 1),
    bboxes: tall,
    ...cropInputs,
    keep_aspect: 'pad',
  })
  assert.deepEqual(
    [23, 24, 39, 40].map((x) => pixel(padded, x, 32)[0]),
    [0, 1, 1, 0],
  )
})

test('boxes that are none are refused by name', async () => {
  const image = plain([1, 8, 8, 3], 0)
  await assert.rejects(
    callNode(drawBBoxes, { image, bboxes: [{ x: 1, y: 1, width: 2 }] }),
    fails('KeyError', /'height'/),
  )
  await assert.rejects(callNode(drawBBoxes, { image, bboxes: ['cat'] }), fails('TypeError', /got 'str'/))
})

test('boxes are drawn without a picture, the surest last, with the colour of what they hold', async () => {
  const bboxes = [
    { x: 0, y: 0, width: 60, height: 40, label: 'bicycle', score: 0.9 },
    { x: 0, y: 0, width: 60, height: 40, label: 'person', score: 0.4 },
  ]
  const drawn = await tensorFrom(drawBBoxes, { bboxes })
  assert.deepEqual(drawn.shape, [1, 40, 60, 3])
  const green = [0, Math.fround(200 / 255), 0]
  assert.deepEqual(pixel(drawn, 1, 1), green)
  const coloured = [...drawn.data].filter((value) => value > 0).length
  const outline = 3 * (60 + 40)
  assert.ok(coloured > outline, 'the name is written inside')
  assert.deepEqual((await tensorFrom(drawBBoxes, { bboxes: [] })).shape, [1, 640, 640, 3])
})

test('what a mask marks fills the crop, on the background, also when the mask is the wrong way round', async () => {
  const isMarked = (x: number, y: number) => x >= 30 && x < 70 && y >= 10 && y < 90
  const images = tensor([1, 100, 100, 3], (index) =>
    isMarked(Math.floor(index / 3) % 100, Math.floor(index / 300)) ? 1 : 0.5,
  )
  const maskOf = (inside: number) =>
    tensor([1, 100, 100], (index) => (isMarked(index % 100, Math.floor(index / 100)) ? inside : 1 - inside))
  const wanted = { width: 64, height: 128, pad_factor: 1, grow_mask: 0, background: '#ff0000' }
  const cropped = await tensorFrom(imageCropToMask, { images, masks: maskOf(1), ...wanted })
  assert.deepEqual(cropped.shape, [1, 128, 64, 3])
  assert.deepEqual(pixel(cropped, 32, 64), [1, 1, 1])
  const inverted = await tensorFrom(imageCropToMask, { images, masks: maskOf(0), ...wanted })
  assert.ok(isSame(inverted, cropped))
  const wide = await tensorFrom(imageCropToMask, { images, masks: maskOf(1), ...wanted, width: 128 })
  assert.deepEqual(pixel(wide, 2, 64), [1, 0, 0])
})

test('masks must be one, or as many as the images', async () => {
  const wanted = { width: 64, height: 64, pad_factor: 1, grow_mask: 0, background: '#000000' }
  const inputs = { images: plain([3, 8, 8, 3], 0), masks: plain([2, 8, 8], 0), ...wanted }
  await assert.rejects(
    callNode(imageCropToMask, inputs),
    fails('ValueError', /Mask batch 2 does not match image batch 3/),
  )
})

const big = plain([1, 300, 300, 3], 0.5)
const EVERY_INPUT: Readonly<Record<string, Value>> = {
  ...{ image: big, images: big, image1: big, image2: big, input: big, masks: plain([1, 300, 300], 1) },
  ...{ image_list: [big], final_width: [300], final_height: [300], bboxes: { x: 9, y: 9, width: 99, height: 99 } },
  ...{ upscale_method: 'bicubic', megapixels: 0.2, resolution_steps: 1, largest_size: 400, interpolation: 'area' },
  ...{ resize_type: 'scale by multiplier', 'resize_type.multiplier': 1.5, scale_method: 'bilinear' },
  ...{ shorter_edge: 400, longer_edge: 400, target_width: 320, target_height: 320, padding_color: 'white' },
  ...{ crop_region: { x: 0, y: 0, width: 200, height: 200 }, width: 200, height: 200, seed: 1 },
  ...{ pad_factor: 1, grow_mask: 2, background: '#000000', left: 8, top: 8, right: 8, bottom: 8, feathering: 8 },
  ...{ rotation: '90 degrees', flip_method: 'x-axis: vertically', direction: 'right', match_image_size: false },
  ...{ spacing_width: 2, spacing_color: 'red', tile_width: 64, tile_height: 64, text: 'words', font_size: 9 },
  ...{ color: '#ffffff', position: 'top', align: 'left', outline: true, output_width: 128, output_height: 128 },
  ...{ padding: 0, keep_aspect: 'stretch' },
}

const STOPPABLE = `
  ImageScaleToTotalPixels ImageScaleToMaxDimension ResizeImageMaskNode ResizeImagesByShorterEdge
  ResizeImagesByLongerEdge ResizeAndPadImage FluxKontextImageScale ImageCropV2 ImageCropToMask
  CenterCropImages RandomCropImages ImagePadForOutpaint ImageRotate ImageFlip ImageStitch
  SplitImageToTileList ImageMergeTileList TextOverlay CropByBBoxes DrawBBoxes
`
  .trim()
  .split(/\s+/)

for (const classType of STOPPABLE) {
  test(`${classType} stops when its run is cancelled`, async () => {
    const node = BUILT_IN_NODES.find((one) => one.classType === classType)
    assert.ok(node !== undefined)
    const { required = {}, optional = {} } = node.definition.input
    const names = [...Object.keys(required), ...Object.keys(optional)]
    const isWanted = ([name]: [string, Value]) => names.includes(name.split('.')[0])
    const overlap = node.classType === 'ImageMergeTileList' ? [8] : 8
    const inputs = Object.fromEntries(Object.entries({ ...EVERY_INPUT, overlap }).filter(isWanted))
    await assert.rejects(callNode(node, inputs, { allowedCheckpoints: 1 }), Interrupted)
  })
}
