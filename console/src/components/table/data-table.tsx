/**
 * A table of any length of which only the rows on the screen exist. Rows have one height, so a row is where its number says. One row
 * is current: keys move it, and it is the one that deeds without a selection are about.
 */
import type { ComponentChildren } from 'preact'
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks'
import { toWindow } from './virtual-rows.ts'

export interface Column {
  readonly name: string
  readonly label: ComponentChildren
}

interface DataTableProps {
  readonly label: string
  readonly columns: readonly Column[]
  readonly ids: readonly string[]
  readonly renderRow: (id: string) => ComponentChildren
  readonly classOf?: (id: string) => string
  readonly current: string | null
  readonly onCurrent: (id: string) => void
  readonly onEndInSight?: () => void
  readonly onTopChange?: (isAtTop: boolean) => void
  readonly onPointed?: (isPointed: boolean) => void
  readonly className?: string
  readonly footer?: ComponentChildren
}

const NEAR_END_ROWS = 30

export function DataTable(props: DataTableProps) {
  const { label, columns, ids, renderRow, classOf, current, onCurrent, onEndInSight, onTopChange, onPointed } = props
  const scroller = useRef<HTMLDivElement>(null)
  const [view, setView] = useState<View>({ scrollTop: 0, height: 800, rowHeight: 44 })

  /** Only a scroll that brings other rows is a reason to draw. */
  const look = (rowHeight: number) => {
    const element = scroller.current
    if (element === null) return
    const { scrollTop, clientHeight: height } = element
    const next = { scrollTop, height, rowHeight }
    setView((before) => (isSameWindow(before, next) ? before : next))
    onTopChange?.(scrollTop < rowHeight / 2)
  }
  const measure = () => {
    const element = scroller.current
    if (element === null) return
    look(Number.parseFloat(getComputedStyle(element).getPropertyValue('--row-height')) || 44)
  }
  useLayoutEffect(() => {
    measure()
    const watcher = new ResizeObserver(measure)
    if (scroller.current !== null) watcher.observe(scroller.current)
    return () => watcher.disconnect()
  }, [])

  const { first, last, offset } = toWindow({ ...view, rows: ids.length })
  useEffect(() => {
    if (last + NEAR_END_ROWS >= ids.length) onEndInSight?.()
  }, [last, ids.length, onEndInSight])

  const at = current === null ? -1 : ids.indexOf(current)
  useEffect(() => {
    const element = scroller.current
    if (element === null || at === -1) return
    const [top, bottom] = [at * view.rowHeight, (at + 1) * view.rowHeight]
    const head = 36
    if (top < element.scrollTop) element.scrollTop = top
    else if (bottom + head > element.scrollTop + element.clientHeight)
      element.scrollTop = bottom + head - element.clientHeight
  }, [at, view.rowHeight])

  return (
    <div
      ref={scroller}
      class={`table-scroll ${props.className ?? ''}`}
      onScroll={() => look(view.rowHeight)}
      onPointerEnter={(event) => event.pointerType === 'mouse' && onPointed?.(true)}
      onPointerLeave={() => onPointed?.(false)}
    >
      <div role="table" aria-label={label} aria-rowcount={ids.length + 1} class="table">
        <TableHead columns={columns} />
        <div role="rowgroup" class="table-body" style={{ height: `${ids.length * view.rowHeight}px` }}>
          <div class="table-window" role="presentation" style={{ transform: `translateY(${offset}px)` }}>
            {ids.slice(first, last).map((id, index) => (
              <div
                key={id}
                role="row"
                aria-rowindex={first + index + 2}
                data-row={id}
                class={`table-row ${id === current ? 'current' : ''} ${classOf?.(id) ?? ''}`}
                onPointerDown={() => onCurrent(id)}
                onFocusIn={() => onCurrent(id)}
              >
                {renderRow(id)}
              </div>
            ))}
          </div>
        </div>
      </div>
      {props.footer}
    </div>
  )
}

function TableHead({ columns }: Pick<DataTableProps, 'columns'>) {
  return (
    <div role="rowgroup" class="table-head">
      <div role="row" aria-rowindex={1} class="table-row">
        {columns.map(({ name, label }) => (
          <div key={name} role="columnheader" class={`cell cell-${name}`}>
            {label}
          </div>
        ))}
      </div>
    </div>
  )
}

interface View {
  readonly scrollTop: number
  readonly height: number
  readonly rowHeight: number
}

/** Whatever the number of rows is. */
function isSameWindow(before: View, after: View): boolean {
  const [was, is] = [before, after].map((view) => toWindow({ ...view, rows: Number.MAX_SAFE_INTEGER }))
  return was.first === is.first && was.last === is.last && before.rowHeight === after.rowHeight
}

/** Moves the current row; gives the id that is current then. */
export function step(ids: readonly string[], current: string | null, by: 1 | -1): string | null {
  if (ids.length === 0) return null
  const at = current === null ? -1 : ids.indexOf(current)
  if (at === -1) return ids[by === 1 ? 0 : ids.length - 1]
  return ids[Math.min(ids.length - 1, Math.max(0, at + by))]
}
