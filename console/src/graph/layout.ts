/**
 * Places the nodes of a graph in layers from left to right: a node stands right of everything that feeds it, near what it is linked
 * to. Linear in nodes and links but for the sorting, so that two thousand nodes take some tens of milliseconds. Cycles are drawn, not
 * followed.
 */
export interface Box {
  x: number
  y: number
  readonly w: number
  readonly h: number
}

interface LayoutInput {
  readonly sizes: readonly { readonly w: number; readonly h: number }[]
  /** Pairs of indexes. */
  readonly links: readonly (readonly [from: number, to: number])[]
}

const GAP_X = 72
const GAP_Y = 20
const ORDER_SWEEPS = 4
const PLACE_SWEEPS = 3

export function layOut({ sizes, links }: LayoutInput): Box[] {
  const count = sizes.length
  const next: number[][] = Array.from({ length: count }, () => [])
  const before: number[][] = Array.from({ length: count }, () => [])
  for (const [from, to] of withoutCycles(count, links)) {
    next[from].push(to)
    before[to].push(from)
  }
  const layerOf = toLayers(next, before)
  const layers: number[][] = []
  for (const [node, layer] of layerOf.entries()) {
    while (layers.length <= layer) layers.push([])
    layers[layer].push(node)
  }
  orderLayers(layers, next, before)
  return place(layers, { sizes, next, before })
}

/** Leaves out the links that lead back to a node on the way to themselves. */
function withoutCycles(count: number, links: LayoutInput['links']): LayoutInput['links'] {
  const out: number[][] = Array.from({ length: count }, () => [])
  for (const [index, [from]] of links.entries()) out[from].push(index)
  const state = new Uint8Array(count)
  const isBack = new Uint8Array(links.length)
  const stack: { node: number; at: number }[] = []
  for (let root = 0; root < count; root++) {
    if (state[root] !== 0) continue
    stack.push({ node: root, at: 0 })
    state[root] = 1
    while (stack.length > 0) {
      const top = stack[stack.length - 1]
      const link = out[top.node][top.at++]
      if (link === undefined) {
        state[top.node] = 2
        stack.pop()
        continue
      }
      const to = links[link][1]
      if (state[to] === 1) isBack[link] = 1
      else if (state[to] === 0) {
        state[to] = 1
        stack.push({ node: to, at: 0 })
      }
    }
  }
  return links.filter((_, index) => isBack[index] === 0)
}

/** The longest way from a source; then sources move right, next to what they feed. */
function toLayers(next: readonly number[][], before: readonly number[][]): number[] {
  const count = next.length
  const layer = new Array<number>(count).fill(0)
  const open = before.map((list) => list.length)
  const ready = [...open.keys()].filter((node) => open[node] === 0)
  for (let at = 0; at < ready.length; at++) {
    const node = ready[at]
    for (const to of next[node]) {
      layer[to] = Math.max(layer[to], layer[node] + 1)
      if (--open[to] === 0) ready.push(to)
    }
  }
  for (const node of ready.toReversed()) {
    if (before[node].length > 0 || next[node].length === 0) continue
    layer[node] = Math.max(0, Math.min(...next[node].map((to) => layer[to])) - 1)
  }
  return layer
}

/** Each layer sorted by where its neighbours stand, to and fro. */
function orderLayers(layers: number[][], next: readonly number[][], before: readonly number[][]): void {
  const rank = new Float64Array(next.length)
  const number = (layer: readonly number[]) => {
    for (const [index, node] of layer.entries()) rank[node] = index / layer.length
  }
  layers.forEach(number)
  for (let sweep = 0; sweep < ORDER_SWEEPS; sweep++) {
    const isForward = sweep % 2 === 0
    const neighbours = isForward ? before : next
    for (const layer of isForward ? layers : layers.toReversed()) {
      const weight = new Map<number, number>()
      for (const node of layer) weight.set(node, mean(neighbours[node], rank) ?? rank[node])
      layer.sort((a, b) => (weight.get(a) as number) - (weight.get(b) as number))
      number(layer)
    }
  }
}

interface Placing {
  readonly sizes: LayoutInput['sizes']
  readonly next: readonly number[][]
  readonly before: readonly number[][]
}

function place(layers: readonly number[][], { sizes, next, before }: Placing): Box[] {
  const boxes: Box[] = sizes.map(({ w, h }) => ({ x: 0, y: 0, w, h }))
  let x = 0
  for (const layer of layers) {
    let y = 0
    let width = 0
    for (const node of layer) {
      boxes[node].x = x
      boxes[node].y = y
      y += boxes[node].h + GAP_Y
      width = Math.max(width, boxes[node].w)
    }
    x += width + GAP_X
  }
  const middle = new Float64Array(boxes.length)
  const keep = (node: number) => {
    middle[node] = boxes[node].y + boxes[node].h / 2
  }
  for (const node of boxes.keys()) keep(node)
  for (let sweep = 0; sweep < PLACE_SWEEPS; sweep++) {
    const isForward = sweep % 2 === 0
    for (const layer of isForward ? layers : layers.toReversed()) {
      for (const node of layer) {
        const wanted = mean(isForward ? before[node] : next[node], middle)
        if (wanted !== null) boxes[node].y = wanted - boxes[node].h / 2
      }
      spread(layer, boxes)
      layer.forEach(keep)
    }
  }
  const top = boxes.reduce((least, { y }) => Math.min(least, y), Number.POSITIVE_INFINITY)
  for (const box of boxes) box.y -= top
  return boxes
}

/** Keeps the order of a layer and lets no two boxes touch; what was pushed down is shared out above. */
function spread(layer: readonly number[], boxes: readonly Box[]): void {
  let wanted = 0
  for (const node of layer) wanted += boxes[node].y
  let floor = Number.NEGATIVE_INFINITY
  for (const node of layer) {
    boxes[node].y = Math.max(boxes[node].y, floor)
    floor = boxes[node].y + boxes[node].h + GAP_Y
  }
  let got = 0
  for (const node of layer) got += boxes[node].y
  const shift = layer.length === 0 ? 0 : (wanted - got) / layer.length
  for (const node of layer) boxes[node].y += shift
}

function mean(nodes: readonly number[], values: Float64Array): number | null {
  if (nodes.length === 0) return null
  let sum = 0
  for (const node of nodes) sum += values[node]
  return sum / nodes.length
}

export interface Camera {
  /** The point of the graph at the top left corner. */
  readonly x: number
  readonly y: number
  readonly scale: number
}

const MIN_SCALE = 0.02
const MAX_SCALE = 3
const MARGIN = 24

/** Where the eye stands over the graph: moving, zooming, fitting, and what lies under a point. Pure. */
export function fit(boxes: readonly Box[], size: { readonly w: number; readonly h: number }): Camera {
  if (boxes.length === 0 || size.w === 0) return { x: 0, y: 0, scale: 1 }
  let [left, top, right, bottom] = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY, -Infinity, -Infinity]
  for (const { x, y, w, h } of boxes) {
    left = Math.min(left, x)
    top = Math.min(top, y)
    right = Math.max(right, x + w)
    bottom = Math.max(bottom, y + h)
  }
  const scale = clamp(
    Math.min((size.w - 2 * MARGIN) / Math.max(1, right - left), (size.h - 2 * MARGIN) / Math.max(1, bottom - top), 1.2),
  )
  return {
    x: (left + right) / 2 - size.w / 2 / scale,
    y: (top + bottom) / 2 - size.h / 2 / scale,
    scale,
  }
}

/** The point under the pointer stays under it. */
export function zoomAt(camera: Camera, factor: number, at: { readonly x: number; readonly y: number }): Camera {
  const scale = clamp(camera.scale * factor)
  return {
    x: camera.x + at.x / camera.scale - at.x / scale,
    y: camera.y + at.y / camera.scale - at.y / scale,
    scale,
  }
}

export function moveBy(camera: Camera, dx: number, dy: number): Camera {
  return { ...camera, x: camera.x - dx / camera.scale, y: camera.y - dy / camera.scale }
}

/** So that the box stands in the middle, and is large enough to read. */
export function lookAt(camera: Camera, box: Box, size: { readonly w: number; readonly h: number }): Camera {
  const scale = clamp(Math.max(camera.scale, 0.7))
  return { x: box.x + box.w / 2 - size.w / 2 / scale, y: box.y + box.h / 2 - size.h / 2 / scale, scale }
}

export function hit(camera: Camera, boxes: readonly Box[], at: { readonly x: number; readonly y: number }): number {
  const x = camera.x + at.x / camera.scale
  const y = camera.y + at.y / camera.scale
  return boxes.findLastIndex((box) => x >= box.x && x <= box.x + box.w && y >= box.y && y <= box.y + box.h)
}

function clamp(scale: number): number {
  return Math.min(MAX_SCALE, Math.max(MIN_SCALE, scale))
}
