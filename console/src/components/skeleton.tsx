/** Rows of the real height where rows will be. They appear after a moment only: most answers are faster. */
export function Skeleton({ rows, kind = 'row' }: { readonly rows: number; readonly kind?: 'row' | 'tile' | 'card' }) {
  return (
    <div class={`skeleton skeleton-${kind}s`} aria-hidden="true">
      {Array.from({ length: rows }, (_, index) => (
        <div key={index} class={`skeleton-${kind}`} />
      ))}
    </div>
  )
}
