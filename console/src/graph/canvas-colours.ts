/** The page's colours as a canvas takes them: a custom property resolves only where it is used. */
import { effect } from '@preact/signals'
import { theme } from '../state/preferences.ts'
import type { Scene } from './draw.ts'
import type { Inks } from './scene.ts'

export interface CanvasColours {
  readonly scene: Scene['colours']
  readonly inks: Inks
}

export function readColours(host: HTMLElement): CanvasColours {
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
    skipped: read('edge'),
    heat: read('warning'),
  }
  probe.remove()
  return { scene, inks }
}

/** Calls when the colours may have changed: by choice, or with the system. */
export function onColours(changed: () => void): () => void {
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
