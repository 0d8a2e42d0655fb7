import { hrefOf } from '../../routes.ts'

export function NotFoundPage() {
  return (
    <section class="page">
      <h1>Nothing here</h1>
      <p>
        This address names no page of the console. <a href={hrefOf('/')}>Home</a>
      </p>
    </section>
  )
}
