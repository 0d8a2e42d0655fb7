import type { ComponentChildren } from 'preact'

/** A table that may be wider than the screen: it scrolls by itself, by keys too. */
export function TableWrap({ label, children }: { readonly label: string; readonly children: ComponentChildren }) {
  return (
    <div class="table-wrap" role="group" aria-label={label} tabIndex={0}>
      {children}
    </div>
  )
}
