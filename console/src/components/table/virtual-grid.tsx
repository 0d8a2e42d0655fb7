/**
 * Tiles or rows of any number of which only those on the screen exist. It does not scroll by itself: it may stand in a page or in a
 * dialog, and follows whatever scrolls it.
 */
import type { ComponentChildren } from 'preact'
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks'
import { toGrid, toWindow } from './virtual-rows.ts'

interface VirtualGridProps {
  readonly label: string
  readonly count: number
  readonly keyOf: (index: number) => string
  readonly children: (index: number) => ComponentChildren
  readonly onEndInSight?: () => void
  /** How many were looked through for those that are shown: when none of them fits, the next are asked for. */
  readonly loaded?: number
  /** Rows of this height instead of tiles. */
  readonly rowHeight?: number
  readonly className?: string
}

const TILE = { least: 168, gap: 12, lineHeight: 28 }
const OVERSCAN_ROWS = 3
/** The next page is asked for before its place is reached. */
const NEAR_END_PX = 1200

export function VirtualGrid(props: VirtualGridProps) {
  const { label, count, keyOf, children, onEndInSight, loaded = count, rowHeight, className = '' } = props
  const place = useRef<HTMLDivElement>(null)
  const [view, setView] = useState({ top: 0, height: 0, width: 0 })
  const measure = () => {
    const element = place.current
    if (element === null) return
    const { top, width } = element.getBoundingClientRect()
    const height = window.innerHeight
    setView((before) =>
      before.top === top && before.height === height && before.width === width ? before : { top, height, width },
    )
  }
  useLayoutEffect(() => {
    measure()
    const watcher = new ResizeObserver(measure)
    if (place.current !== null) watcher.observe(place.current)
    // Scrolling does not bubble, but it is heard on the way down, whichever element scrolls.
    document.addEventListener('scroll', measure, { capture: true, passive: true })
    window.addEventListener('resize', measure)
    return () => {
      watcher.disconnect()
      document.removeEventListener('scroll', measure, { capture: true })
      window.removeEventListener('resize', measure)
    }
  }, [])
  const { columns, rowHeight: height } =
    rowHeight === undefined ? toGrid({ ...TILE, width: view.width }) : { columns: 1, rowHeight }
  const rows = Math.ceil(count / columns)
  const scrolled = Math.max(0, -view.top)
  const { first, last, offset } = toWindow({
    ...{ scrollTop: scrolled, height: view.height, rowHeight: height, rows, overscan: OVERSCAN_ROWS },
  })
  const isEndNear = view.width > 0 && scrolled + view.height + NEAR_END_PX >= rows * height
  useEffect(() => {
    if (isEndNear) onEndInSight?.()
  }, [isEndNear, loaded, onEndInSight])
  const shown = view.width === 0 ? [] : range(first * columns, Math.min(count, last * columns))
  return (
    <div ref={place} class={`virtual ${className}`} style={{ height: `${rows * height}px` }}>
      <ul
        class={rowHeight === undefined ? 'virtual-tiles' : 'virtual-list'}
        aria-label={label}
        style={{
          transform: `translateY(${offset}px)`,
          gridTemplateColumns: `repeat(${columns}, minmax(0, 1fr))`,
          gridAutoRows: `${rowHeight ?? height - TILE.gap}px`,
        }}
      >
        {shown.map((index) => (
          <li key={keyOf(index)} aria-setsize={count} aria-posinset={index + 1}>
            {children(index)}
          </li>
        ))}
      </ul>
    </div>
  )
}

function range(from: number, to: number): readonly number[] {
  return Array.from({ length: Math.max(0, to - from) }, (_, index) => from + index)
}
