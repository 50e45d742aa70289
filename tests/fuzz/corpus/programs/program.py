# Ada Byron, 4711123
name = 'Ada'
print(f'{name} 1')
