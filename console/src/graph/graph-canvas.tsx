/** The graph as a picture that can be moved and zoomed. Its equal for those who do not see it is the table of nodes beside it. */
import { effect } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import type { NodeSpan } from '../api/job-detail.ts'
import { serverNow } from '../state/clock.ts'
import { theme } from '../state/preferences.ts'
import { draw, type Scene } from './draw.ts'
import { type Camera, fit, hit, lookAt, moveBy, zoomAt } from './layout.ts'
import { type Heat, type Inks, type PlacedGraph, toDrawn } from './scene.ts'

export interface GraphHandle {
  fit(): void
  lookAt(id: string): void
}

interface GraphCanvasProps {
  readonly graph: PlacedGraph
  readonly spans: ReadonlyMap<string, NodeSpan>
  readonly heat: Heat
  readonly chosen: string | null
  readonly onChoose: (id: string | null) => void
  readonly label: string
  /** Filled in with what the buttons around the picture can do. */
  readonly handle: { current: GraphHandle | null }
}

const CLICK_PX = 4

export function GraphCanvas(props: GraphCanvasProps) {
  const canvas = useRef<HTMLCanvasElement>(null)
  const state = useRef<{ camera: Camera; isFitted: boolean; frame: number; props: GraphCanvasProps }>({
    camera: { x: 0, y: 0, scale: 1 },
    isFitted: false,
    frame: 0,
    props,
  })
  state.current.props = props

  useEffect(() => {
    const element = canvas.current
    const context = element?.getContext('2d')
    if (element === null || context == null) return
    const { current: now } = state
    let colours = readColours(element.parentElement ?? document.body)
    const size = () => ({ w: element.clientWidth, h: element.clientHeight, ratio: window.devicePixelRatio || 1 })
    const paint = () => {
      now.frame = 0
      const { w, h, ratio } = size()
      if (element.width !== Math.round(w * ratio)) element.width = Math.round(w * ratio)
      if (element.height !== Math.round(h * ratio)) element.height = Math.round(h * ratio)
      const { graph, spans, heat, chosen } = now.props
      if (!now.isFitted && w > 0) {
        now.camera = fit(graph.boxes, { w, h })
        now.isFitted = true
      }
      const nodes = toDrawn(graph, { spans, heat, chosen, inks: colours.inks, now: serverNow() })
      draw(context, { nodes, links: graph.links, groups: graph.groups, colours: colours.scene }, now.camera, {
        ...{ w, h, ratio },
      })
    }
    const ask = () => {
      if (now.frame === 0) now.frame = requestAnimationFrame(paint)
    }
    repaint.current = ask
    props.handle.current = {
      fit() {
        now.isFitted = false
        ask()
      },
      lookAt(id) {
        const index = now.props.graph.ids.indexOf(id)
        if (index === -1) return
        now.isFitted = true
        now.camera = lookAt(now.camera, now.props.graph.boxes[index], size())
        ask()
      },
    }
    const watcher = new ResizeObserver(ask)
    watcher.observe(element)
    const unwatch = onColours(() => {
      colours = readColours(element.parentElement ?? document.body)
      ask()
    })
    const unhand = followHand(element, now, ask)
    return () => {
      watcher.disconnect()
      unwatch()
      unhand()
      cancelAnimationFrame(now.frame)
      now.frame = 0
      props.handle.current = null
    }
  }, [props.graph])
  const repaint = useRef<() => void>(() => undefined)
  useEffect(() => repaint.current(), [props.spans, props.heat, props.chosen])

  return (
    <div class="graph-place" style={{ height: `${heightFor(props.graph)}px` }}>
      <canvas ref={canvas} class="graph-canvas" role="img" aria-label={props.label} />
    </div>
  )
}

/** As high as the graph needs at its natural size, within bounds. */
function heightFor({ boxes }: PlacedGraph): number {
  const bottom = boxes.reduce((most, { y, h }) => Math.max(most, y + h), 0)
  const top = boxes.reduce((least, { y }) => Math.min(least, y), bottom)
  return Math.round(Math.min(560, Math.max(240, bottom - top + 96)))
}

/** Drag moves, the wheel zooms, two fingers do both, a click chooses. */
function followHand(
  element: HTMLCanvasElement,
  now: { camera: Camera; props: GraphCanvasProps },
  ask: () => void,
): () => void {
  const pointers = new Map<number, { x: number; y: number }>()
  let moved = 0
  const stop = new AbortController()
  const on = <Name extends keyof HTMLElementEventMap>(name: Name, listen: (event: HTMLElementEventMap[Name]) => void) =>
    element.addEventListener(name, listen, { signal: stop.signal, passive: false })
  on('pointerdown', (event) => {
    element.setPointerCapture(event.pointerId)
    pointers.set(event.pointerId, { x: event.offsetX, y: event.offsetY })
    moved = 0
  })
  on('pointermove', (event) => {
    const before = pointers.get(event.pointerId)
    if (before === undefined) return
    const at = { x: event.offsetX, y: event.offsetY }
    const others = [...pointers].filter(([id]) => id !== event.pointerId).map(([, point]) => point)
    moved += Math.abs(at.x - before.x) + Math.abs(at.y - before.y)
    if (others.length > 0) {
      const [other] = others
      const factor = distance(at, other) / Math.max(1, distance(before, other))
      now.camera = zoomAt(now.camera, factor, { x: (at.x + other.x) / 2, y: (at.y + other.y) / 2 })
      now.camera = moveBy(now.camera, (at.x - before.x) / 2, (at.y - before.y) / 2)
    } else now.camera = moveBy(now.camera, at.x - before.x, at.y - before.y)
    pointers.set(event.pointerId, at)
    ask()
  })
  on('pointerup', (event) => {
    pointers.delete(event.pointerId)
    if (moved > CLICK_PX) return
    const { graph, onChoose } = now.props
    const index = hit(now.camera, graph.boxes, { x: event.offsetX, y: event.offsetY })
    onChoose(index === -1 ? null : graph.ids[index])
  })
  on('pointercancel', (event) => pointers.delete(event.pointerId))
  on('wheel', (event) => {
    event.preventDefault()
    now.camera = zoomAt(now.camera, Math.exp(-event.deltaY / 400), { x: event.offsetX, y: event.offsetY })
    ask()
  })
  return () => stop.abort()
}

function distance(a: { x: number; y: number }, b: { x: number; y: number }): number {
  return Math.hypot(a.x - b.x, a.y - b.y)
}

interface CanvasColours {
  readonly scene: Scene['colours']
  readonly inks: Inks
}

/** The page's colours as a canvas takes them: a custom property resolves only where it is used. */
function readColours(host: HTMLElement): CanvasColours {
  const probe = document.createElement('span')
  probe.hidden = true
  host.append(probe)
  const read = (name: string) => {
    probe.style.color = `var(--${name})`
    return getComputedStyle(probe).color
  }
  const scene = {
    text: read('text'),
    dim: read('dim'),
    rule: read('rule'),
    edge: read('edge'),
    accent: read('accent'),
    card: read('card'),
    sunk: read('sunk'),
  }
  const inks = {
    waiting: read('edge'),
    running: read('running'),
    done: read('succeeded'),
    cached: read('dim'),
    failed: read('failed'),
    interrupted: read('dim'),
    skipped: read('edge'),
    heat: read('warning'),
  }
  probe.remove()
  return { scene, inks }
}

/** Calls when the colours may have changed: by choice, or with the system. */
function onColours(changed: () => void): () => void {
  const system = matchMedia('(prefers-color-scheme: dark)')
  const later = () => requestAnimationFrame(changed)
  system.addEventListener('change', later)
  const stop = effect(() => {
    theme.value
    later()
  })
  return () => {
    system.removeEventListener('change', later)
    stop()
  }
}
