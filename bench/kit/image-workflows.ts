/** Ten workflows as people run them: pictures are read, worked on and saved. All of them are about 2048 by 2048 pixels. */
export const SIDE = 2048
const HALF = SIDE / 2

type Graph = Readonly<Record<string, { class_type: string; inputs: Readonly<Record<string, unknown>> }>>

export interface ImageWorkflow {
  readonly name: string
  /** Full-size pictures that one run reads or writes, whichever is more. */
  readonly images: number
  /** What ComfyUI reached on the machine of docs/performance.md: the bar on that machine. */
  readonly megapixelsPerSecond: number
  readonly graph: Graph
}

const load = (image: string) => ({ class_type: 'LoadImage', inputs: { image } })

/** Loads two photographs and a mask, runs one node called `work`, and saves its result. */
function around(classType: string, inputs: Readonly<Record<string, unknown>>): Graph {
  const sources: Graph = {
    first: load('first.png'),
    second: load('second.png'),
    half: load('half.png'),
    mask: { class_type: 'LoadImageMask', inputs: { image: 'mask.png', channel: 'red' } },
  }
  const used = new Set(Object.values(inputs).flatMap((value) => (Array.isArray(value) ? [value[0]] : [])))
  return {
    ...Object.fromEntries(Object.entries(sources).filter(([id]) => used.has(id))),
    work: { class_type: classType, inputs },
    save: { class_type: 'SaveImage', inputs: { images: ['work', 0], filename_prefix: 'bench' } },
  }
}

function scale(method: string, from: string, side: number): Graph {
  const size = { width: side, height: side, crop: 'disabled' }
  return around('ImageScale', { image: [from, 0], upscale_method: method, ...size })
}

const both = { image1: ['first', 0], image2: ['second', 0] }

export const IMAGE_WORKFLOWS: readonly ImageWorkflow[] = [
  { name: 'scale, bilinear, to a half', images: 1, megapixelsPerSecond: 11.2, graph: scale('bilinear', 'first', HALF) },
  { name: 'scale, bicubic, to the double', images: 1, megapixelsPerSecond: 4.9, graph: scale('bicubic', 'half', SIDE) },
  { name: 'scale, lanczos, to a half', images: 1, megapixelsPerSecond: 9.1, graph: scale('lanczos', 'first', HALF) },
  { name: 'scale, area, to a half', images: 1, megapixelsPerSecond: 10.6, graph: scale('area', 'first', HALF) },
  {
    name: 'blur',
    images: 1,
    megapixelsPerSecond: 4.9,
    graph: around('ImageBlur', { image: ['first', 0], blur_radius: 5, sigma: 1 }),
  },
  {
    name: 'sharpen',
    images: 1,
    megapixelsPerSecond: 3.7,
    graph: around('ImageSharpen', { image: ['first', 0], sharpen_radius: 1, sigma: 1, alpha: 0.5 }),
  },
  {
    name: 'composite through a mask',
    images: 2,
    megapixelsPerSecond: 6,
    graph: around('ImageCompositeMasked', {
      destination: ['first', 0],
      source: ['second', 0],
      mask: ['mask', 0],
      x: 0,
      y: 0,
      resize_source: false,
    }),
  },
  {
    name: 'batch of four',
    images: 4,
    megapixelsPerSecond: 5.1,
    graph: around('BatchImagesNode', {
      'images.image0': ['first', 0],
      'images.image1': ['second', 0],
      'images.image2': ['first', 0],
      'images.image3': ['second', 0],
    }),
  },
  {
    name: 'quantize',
    images: 1,
    megapixelsPerSecond: 2.8,
    graph: around('ImageQuantize', { image: ['first', 0], colors: 64, dither: 'floyd-steinberg' }),
  },
  {
    name: 'blend',
    images: 2,
    megapixelsPerSecond: 5.2,
    graph: around('ImageBlend', { ...both, blend_factor: 0.5, blend_mode: 'overlay' }),
  },
]
