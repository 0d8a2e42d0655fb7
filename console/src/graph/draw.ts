/** Draws a graph on a canvas: only what is in sight, and of small nodes only their ground. */
import type { Box, Camera } from './layout.ts'

export interface DrawnNode {
  readonly box: Box
  readonly title: string
  readonly line: string
  readonly ink: string
  readonly fill: string
  readonly isDashed: boolean
  readonly isChosen: boolean
}

export interface Scene {
  readonly nodes: readonly DrawnNode[]
  readonly links: readonly (readonly [from: number, to: number])[]
  readonly groups: readonly { readonly box: Box; readonly title: string }[]
  readonly colours: Readonly<Record<'text' | 'dim' | 'rule' | 'edge' | 'accent' | 'card' | 'sunk', string>>
}

interface Size {
  readonly w: number
  readonly h: number
  readonly ratio: number
}

const TEXT_SCALE = 0.35
const RADIUS = 6

export function draw(context: CanvasRenderingContext2D, scene: Scene, camera: Camera, size: Size): void {
  const { ratio } = size
  context.setTransform(ratio, 0, 0, ratio, 0, 0)
  context.clearRect(0, 0, size.w, size.h)
  context.setTransform(
    ...([camera.scale * ratio, 0, 0, camera.scale * ratio] as const),
    -camera.x * camera.scale * ratio,
    -camera.y * camera.scale * ratio,
  )
  const sight = {
    left: camera.x,
    top: camera.y,
    right: camera.x + size.w / camera.scale,
    bottom: camera.y + size.h / camera.scale,
  }
  const isSeen = ({ x, y, w, h }: Box) => x < sight.right && x + w > sight.left && y < sight.bottom && y + h > sight.top
  for (const { box, title } of scene.groups) if (isSeen(box)) drawGroup(context, box, title, scene)
  drawLinks(context, scene, camera, isSeen)
  const hasText = camera.scale >= TEXT_SCALE
  for (const node of scene.nodes) if (isSeen(node.box)) drawNode(context, node, scene, hasText, camera)
}

function drawGroup(context: CanvasRenderingContext2D, box: Box, title: string, { colours }: Scene): void {
  context.fillStyle = colours.sunk
  context.strokeStyle = colours.rule
  context.lineWidth = 1
  context.beginPath()
  context.roundRect(box.x, box.y, box.w, box.h, RADIUS)
  context.fill()
  context.stroke()
  context.fillStyle = colours.dim
  context.font = '600 14px system-ui, sans-serif'
  context.fillText(title, box.x + 10, box.y + 20, box.w - 20)
}

function drawLinks(
  context: CanvasRenderingContext2D,
  { nodes, links, colours }: Scene,
  camera: Camera,
  isSeen: (box: Box) => boolean,
): void {
  context.strokeStyle = colours.edge
  context.globalAlpha = 0.7
  context.lineWidth = Math.max(1.25, 0.6 / camera.scale)
  context.beginPath()
  for (const [from, to] of links) {
    const [a, b] = [nodes[from].box, nodes[to].box]
    if (!isSeen(a) && !isSeen(b)) continue
    const [x1, y1, x2, y2] = [a.x + a.w, a.y + a.h / 2, b.x, b.y + b.h / 2]
    const bend = Math.max(24, Math.abs(x2 - x1) / 2)
    context.moveTo(x1, y1)
    context.bezierCurveTo(x1 + bend, y1, x2 - bend, y2, x2, y2)
  }
  context.stroke()
  context.globalAlpha = 1
}

function drawNode(
  context: CanvasRenderingContext2D,
  node: DrawnNode,
  { colours }: Scene,
  hasText: boolean,
  camera: Camera,
): void {
  const { x, y, w, h } = node.box
  context.beginPath()
  context.roundRect(x, y, w, h, RADIUS)
  context.fillStyle = colours.card
  context.fill()
  context.fillStyle = node.fill
  context.fill()
  context.setLineDash(node.isDashed ? [5, 4] : [])
  context.strokeStyle = node.isChosen ? colours.accent : node.ink
  context.lineWidth = Math.max(node.isChosen ? 3 : 1.25, (node.isChosen ? 2 : 0.8) / camera.scale)
  context.stroke()
  context.setLineDash([])
  if (!hasText) return
  context.fillStyle = colours.text
  context.font = '600 13px system-ui, sans-serif'
  context.fillText(cut(context, node.title, w - 20), x + 10, y + 20)
  context.fillStyle = node.ink
  context.font = '12px system-ui, sans-serif'
  context.fillText(cut(context, node.line, w - 20), x + 10, y + 38)
}

const widths = new Map<string, string>()
const MAX_WIDTHS = 8000

/** Measuring is the slow part, so its answers are kept. */
function cut(context: CanvasRenderingContext2D, text: string, width: number): string {
  const key = `${context.font} ${width} ${text}`
  const known = widths.get(key)
  if (known !== undefined) return known
  let shown = text
  if (context.measureText(text).width > width) {
    let [low, high] = [0, text.length]
    while (low < high) {
      const middle = (low + high + 1) >> 1
      if (context.measureText(`${text.slice(0, middle)}…`).width <= width) low = middle
      else high = middle - 1
    }
    shown = `${text.slice(0, low)}…`
  }
  if (widths.size > MAX_WIDTHS) widths.clear()
  widths.set(key, shown)
  return shown
}
