/** A few deeds behind one button: arrows move, Enter does, Esc closes and gives the focus back. */
import type { ComponentChildren } from 'preact'
import { useEffect, useId, useRef, useState } from 'preact/hooks'

export interface MenuItem {
  readonly label: string
  readonly onChoose?: () => void
  /** A link instead of a deed. */
  readonly href?: string
  readonly isDownload?: boolean
  readonly isDangerous?: boolean
}

interface MenuProps {
  readonly label: string
  readonly children: ComponentChildren
  readonly items: readonly MenuItem[]
  readonly buttonClass?: string
}

export function Menu({ label, children, items, buttonClass = 'button' }: MenuProps) {
  const [isOpen, setOpen] = useState(false)
  const place = useRef<HTMLDivElement>(null)
  const id = useId()
  useEffect(() => {
    if (!isOpen) return
    place.current?.querySelector<HTMLElement>('[role="menuitem"]')?.focus()
    const onPointer = (event: PointerEvent) => {
      if (event.target instanceof Node && place.current?.contains(event.target) !== true) setOpen(false)
    }
    document.addEventListener('pointerdown', onPointer)
    return () => document.removeEventListener('pointerdown', onPointer)
  }, [isOpen])

  /** The focus goes back first, so that what the deed opens can give it back in turn. */
  function close(): void {
    setOpen(false)
    place.current?.querySelector<HTMLElement>('button')?.focus()
  }

  function onFocusOut(event: FocusEvent): void {
    const isInside = event.relatedTarget instanceof Node && place.current?.contains(event.relatedTarget) === true
    // Without a target the window itself lost the focus, or nothing has it: neither means that one went on.
    if (event.relatedTarget !== null && !isInside) setOpen(false)
  }

  function onKeyDown(event: KeyboardEvent): void {
    if (!isOpen) return
    if (event.key === 'Escape') {
      event.stopPropagation()
      event.preventDefault()
      close()
    }
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key]
    if (step === undefined) return
    event.preventDefault()
    const all = [...(place.current?.querySelectorAll<HTMLElement>('[role="menuitem"]') ?? [])]
    const at = all.indexOf(document.activeElement as HTMLElement)
    all[(at + step + all.length) % all.length]?.focus()
  }

  return (
    <div ref={place} class="menu" onKeyDown={onKeyDown} onFocusOut={onFocusOut}>
      <button
        type="button"
        class={buttonClass}
        aria-haspopup="menu"
        aria-expanded={isOpen}
        aria-controls={isOpen ? id : undefined}
        aria-label={label}
        title={label}
        onClick={() => setOpen(!isOpen)}
      >
        {children}
      </button>
      {isOpen && (
        <div class="menu-list" role="menu" id={id} aria-label={label}>
          {items.map((item) => (
            <Item key={item.label} item={item} onClose={close} />
          ))}
        </div>
      )}
    </div>
  )
}

function Item({ item, onClose }: { readonly item: MenuItem; readonly onClose: () => void }) {
  const { label, onChoose, href, isDownload, isDangerous } = item
  if (href !== undefined)
    return (
      <a role="menuitem" href={href} download={isDownload === true ? '' : undefined} onClick={onClose}>
        {label}
      </a>
    )
  return (
    <button
      type="button"
      role="menuitem"
      class={isDangerous === true ? 'dangerous' : ''}
      onClick={() => {
        onClose()
        onChoose?.()
      }}
    >
      {label}
    </button>
  )
}
