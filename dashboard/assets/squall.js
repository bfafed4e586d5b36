// What pages need beyond htmx: a bounded table, the focus after a click, and buttons that copy.
'use strict'

document.addEventListener('htmx:sseMessage', () => {
  for (const rows of document.querySelectorAll('[data-most]')) {
    while (rows.childElementCount > Number(rows.dataset.most)) rows.lastElementChild.remove()
  }
})

document.addEventListener('htmx:afterSwap', event => {
  if (event.target.id === 'detail') event.target.querySelector('h2')?.focus()
})

document.addEventListener('click', async event => {
  const button = event.target.closest('[data-copy]')
  if (!button) return
  const text = document.getElementById(button.dataset.copy).textContent
  const before = button.textContent
  try {
    await navigator.clipboard.writeText(text)
    button.textContent = 'Copied'
  } catch {
    button.textContent = 'Select and copy it'
  }
  setTimeout(() => { button.textContent = before }, 2000)
})

document.addEventListener('htmx:sendError', () => {
  const status = document.getElementById('status')
  if (status) status.textContent = 'Squall does not respond.'
})
